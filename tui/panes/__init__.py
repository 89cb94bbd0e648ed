"""The five panes, one a module: what stands where; the widgets of `tui.widgets` draw."""
