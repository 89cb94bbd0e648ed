"""What the model may read besides the file being edited: parts of open documents and of an index of the workspace.

    files -> facts (what a file defines and imports) -> index -> ranking -> passages -> `Surroundings` of a prompt

Where a language's definitions cannot be told, passages are those of the most overlap with the text at the cursor.
The index is made in a thread of its own and kept up to date by watching. A completion asks it and never waits for it.
Secret files are read by nobody.
"""

from assistant.daemon.context.sources import Contexts

__all__ = ["Contexts"]
