"""The command palette: everything that keys and buttons do, by name."""

ALL = (
    ("Live", "The document, the draft tree and its steps", "pane('live')"),
    ("Numbers", "Speed-up, acceptance, latency, calibration", "pane('numbers')"),
    ("Scratch pad", "Complete a text of your own, compare methods", "pane('scratch')"),
    ("Clients", "Show one client or document only", "pane('clients')"),
    ("Control", "Daemon, model, configuration", "pane('control')"),
    ("Pause or go on", "The view stands still, the daemon does not", "pause"),
    ("Newest step", "Follow the feed again", "newest"),
    ("Save a trace", "The steps that are kept, to be opened with --trace", "save"),
    ("Export the tree", "The tree of this step as SVG and text", "export"),
    ("Measure plain decoding", "One token at a time: what speed-up is compared with", "measure"),
    ("Next client or document", "Narrow what is shown", "filter"),
    ("Origin letters", "Below the text, on or off", "marks"),
    ("Start the daemon", "Where none runs", "start_daemon"),
    ("Stop the daemon", "After what runs", "stop_daemon"),
    ("Load the model", "Now, rather than at the next completion", "load"),
    ("Unload the model", "Give its memory back", "unload"),
    ("Light or dark", "Change the colours", "theme"),
    ("What all this means", "Help", "help"),
)
"""(title, what it does, action of the application)"""
