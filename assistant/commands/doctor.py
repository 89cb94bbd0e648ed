"""`eagle-assist doctor`: what is installed, which device, which model and head, what is wrong and what to do."""

from typing import Any

import click

from assistant.commands import output


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(*, as_json: bool) -> None:
    """Examine this installation. The exit code is 0 even where something is wrong: read the findings."""
    from assistant.commands.checkup import examine

    output.prepare()
    document = examine()
    if as_json:
        output.write_json(document)
        return
    for section, content in document.items():
        if section != "findings":
            click.echo("\n".join(_lines(section, content)))
    findings = document["findings"]
    click.echo("\nNothing is wrong." if not findings else f"\n{len(findings)} to look at:")
    for finding in findings:
        click.echo(f"- {finding['what']}\n  -> {finding['remedy']}")


def _lines(name: str, content: Any) -> list[str]:
    """A section as indented text."""
    if isinstance(content, dict):
        inner = [line for key, value in content.items() for line in _lines(key, value)]
        return [f"{name}:", *(f"  {line}" for line in inner)]
    if isinstance(content, list):
        inner = [", ".join(_words(item)) for item in content]
        return [f"{name}:", *(f"  {line}" for line in inner or ["none"])]
    return [f"{name}: {_value(name, content)}"]


def _words(item: Any) -> list[str]:
    if isinstance(item, dict):
        return [_value(key, value) for key, value in item.items() if value is not None]
    return [str(item)]


def _value(name: str, content: Any) -> str:
    if name.endswith("bytes") and isinstance(content, int):
        return f"{content / 1e9:.2f} GB"
    return {None: "unknown", True: "yes", False: "no"}.get(content, str(content))
