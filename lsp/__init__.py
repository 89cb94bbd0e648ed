"""The language server: completions where people type, over stdio, one process per editor.

    stdio        frames in, frames out; nothing else reaches standard output
    launch       answers `initialize` at once, loads the rest afterwards
    greeting     what the server says it can do            editor       what the editor says it can do
    server       every method and the handler it goes to   wire         JSON-RPC that survives whatever arrives
    positions    columns in three encodings                documents    the editor's texts, edit by edit
    session      latest wins; waiting, asking, answering   flight       one completion on its way from the daemon
    suggestion   a text and where it belongs; typing along it
    triggers     when to stay silent                       pace         how long to wait for the next key
    link         the connection to the daemon              mirror       the daemon's copy of a document
    items        suggestions as an editor wants them       outcomes     what became of them, counted
    settings     what the editor configured                status       what goes on, said once

It imports no model and no engine; it talks to the daemon through `assistant.client`.
"""
