"""`eagle-assist lsp`: the language server that editors start."""

import click


@click.command()
@click.option("--stdio", is_flag=True, hidden=True, help="The only way there is; some editors add it by themselves.")
@click.option("--clientProcessId", "client", hidden=True, help="Some editors add it; the end of input is enough.")
def lsp(*, stdio: bool, client: str | None) -> None:
    """Serve an editor over standard input and output. Editors start it: docs/editors.md says how."""
    del stdio, client
    from lsp.launch import serve

    serve()
