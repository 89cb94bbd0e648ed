"""What follows a completion: the state after accepting it, and the key that was typed while it was being written."""

from dataclasses import replace

import msgspec

from assistant import protocol
from assistant.daemon.engine_room import Text
from assistant.daemon.jobs import Job


def after_acceptance(request: protocol.Complete, text: Text, suggestion: str) -> tuple[protocol.Complete, Text]:
    """The request, as a prefetch, and the text, that accepting `suggestion` whole would lead to."""
    head, tail = text.text[: text.cursor], text.text[text.cursor :]
    accepted = replace(text, text=head + suggestion + tail, cursor=text.cursor + len(suggestion))
    # The text comes along in `Text`; the version is of a document that does not exist yet.
    changes = {"priority": "prefetch", "deadline_ms": None, "version": None, "cursor": None, "prefix": None}
    return msgspec.structs.replace(request, **changes), accepted


def typed_along(old: Job, new: Job, written: str) -> str | None:
    """What was typed between two requests, where it is how the older one's text begins; None where it is not.

    Args:
        old: a request that is being answered.
        new: one that superseded it.
        written: what the older one's text is so far.
    """
    before, after = old.text, new.text
    size = after.cursor - before.cursor
    same = (old.request.options, before.path, before.language, before.settings) == (
        new.request.options,
        after.path,
        after.language,
        after.settings,
    )
    if not (same and new.request.typed and 0 <= size <= len(written)):
        return None
    typed = after.text[before.cursor : after.cursor]
    if not written.startswith(typed) or after.text[: before.cursor] != before.text[: before.cursor]:
        return None
    return typed if after.text[after.cursor :] == before.text[before.cursor :] else None
