"""The state after acceptance: what will be asked next if the suggestion on the screen is taken."""

from dataclasses import replace

import msgspec

from assistant import protocol
from assistant.daemon.engine_room import Text


def after_acceptance(request: protocol.Complete, text: Text, suggestion: str) -> tuple[protocol.Complete, Text]:
    """The request, as a prefetch, and the text, that accepting `suggestion` whole would lead to."""
    head, tail = text.text[: text.cursor], text.text[text.cursor :]
    accepted = replace(text, text=head + suggestion + tail, cursor=text.cursor + len(suggestion))
    # The text comes along in `Text`; the version is of a document that does not exist yet.
    changes = {"priority": "prefetch", "deadline_ms": None, "version": None, "cursor": None, "prefix": None}
    return msgspec.structs.replace(request, **changes), accepted
