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
        inner = [line for item in content for line in _item(item)]
        return [f"{name}:", *(f"  {line}" for line in inner)] if inner else [f"{name}: none"]
    return [f"{name.removesuffix('_bytes')}: {_value(name, content)}"]


def _item(item: Any) -> list[str]:
    """An entry of a list: its name, and its other facts behind it."""
    if not isinstance(item, dict):
        return [str(item)]
    name, *facts = ((key, value) for key, value in item.items() if value is not None)
    return [f"{name[1]}: " + ", ".join(f"{key} {_value(key, value)}" for key, value in facts)]


def _value(name: str, content: Any) -> str:
    if isinstance(content, bool):
        return "yes" if content else "no"
    if name.endswith("bytes") and isinstance(content, int):
        return f"{content / 1e9:.1f} GB"
    return "none" if content is None else str(content)
