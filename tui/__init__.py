"""The terminal interface: what the daemon completes, how it was drafted, and whether that pays.

Events come in through `feed`, are folded by `state` into one frozen `View`, and the widgets draw what that view says.
"""
