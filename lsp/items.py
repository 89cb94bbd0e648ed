"""Suggestions as an editor takes them: ghost text, and entries of the completion menu."""

from lsprotocol import types

from lsp.documents import Document
from lsp.suggestion import Offer
from lsp.triggers import word_before

ACCEPT = "eagle-assist.accept"
"""the command that an editor runs after inserting a suggestion; its argument is the suggestion's id"""
REJECT = "eagle-assist.reject"
_LABEL = 60
"""characters of a menu entry's label"""
_MORE = "…"
_FIRST = "\x20"
"""sorts before every name"""


def ghost(
    document: Document, offer: Offer, selected: types.SelectedCompletionInfo | None
) -> types.InlineCompletionItem:
    """An item of `textDocument/inlineCompletion`.

    Its range holds the cursor, on one line. With an entry selected in the editor's menu it is that entry's range, and
    the text goes on from the entry's.
    """
    text = document.with_own_line_ends(offer.text)
    where = selected.range if selected else _range(document, offer.cursor, offer.cursor)
    insert = selected.text + text if selected else text
    return types.InlineCompletionItem(
        insert_text=insert, filter_text=insert, range=where, command=_command(offer.suggestion.id)
    )


def entry(document: Document, offer: Offer) -> types.CompletionItem:
    """An item of `textDocument/completion`, from the beginning of the word at the cursor."""
    word = word_before(line_before(document.text, offer.cursor))
    text = document.with_own_line_ends(offer.text)
    where = _range(document, offer.cursor - len(word), offer.cursor)
    whole = word + offer.text
    return types.CompletionItem(
        label=_label(whole),
        label_details=types.CompletionItemLabelDetails(description="eagle-assist"),
        kind=types.CompletionItemKind.Snippet,
        documentation=types.MarkupContent(kind=types.MarkupKind.Markdown, value=_fenced(whole, document.language)),
        sort_text=_FIRST,
        filter_text=word or None,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(range=where, new_text=word + text),
        command=_command(offer.suggestion.id),
    )


def line_before(text: str, cursor: int) -> str:
    """What stands before a cursor on its line."""
    return text[text.rfind("\n", 0, cursor) + 1 : cursor]


def _label(text: str) -> str:
    first, _, more = text.strip().partition("\n")
    first = first.rstrip()
    return first[: _LABEL - 1] + _MORE if len(first) > _LABEL else first + (f" {_MORE}" if more.strip() else "")


def _fenced(text: str, language: str | None) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language or ''}\n{text}\n{fence}"


def _range(document: Document, start: int, end: int) -> types.Range:
    first, last = document.place(start), document.place(end)
    return types.Range(start=types.Position(*first), end=types.Position(*last))


def _command(identity: str) -> types.Command:
    return types.Command(title="Count the suggestion as accepted", command=ACCEPT, arguments=[identity])
