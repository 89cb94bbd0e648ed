"""What clients are told when a completion fails: a stable code for programs and a sentence for people."""

import re

from assistant.errors import UserError

OUT_OF_MEMORY = (
    "out_of_memory",
    "the GPU ran out of memory during this completion; ask again: caches were freed for it.",
)
"""code and sentence"""


def code_of(error: UserError) -> str:
    """The code of an error: its class's name in words (`ModelNotFoundError` is `model_not_found`)."""
    name = type(error).__name__.removesuffix("Error")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
