"""The widgets, one a module: a pure function from a view to content, and the class that shows it."""
