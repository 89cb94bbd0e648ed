"""The text policy: of what a model writes at a cursor, what is shown, and when to stop writing.

`Policy.begin` looks at the document once; its `Filter` takes the generated text step by step and answers with what may
be shown for certain. Text that was shown stays shown.
"""

from assistant.daemon.text.place import Place, Shape
from assistant.daemon.text.policy import Filter, Policy, Settings, Verdict
from assistant.daemon.text.reasons import Reason

__all__ = ["Filter", "Place", "Policy", "Reason", "Settings", "Shape", "Verdict"]
