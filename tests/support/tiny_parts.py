"""A model in three packages that look installed; run as a program, it joins them and says whether it had to."""

import hashlib
import os
import sys
from pathlib import Path

from models import registry
from models.catalog import CatalogEntry
from models.parts import numbered

SITE_VARIABLE = "TINY_PARTS_SITE"
COUNT = 3


def install_parts(site: Path, payload: bytes, version: str = "1.0") -> None:
    """Put the pieces of `payload` into `site` as pip would, in packages that must not be imported."""
    step = -(-len(payload) // COUNT)
    for number in range(1, COUNT + 1):
        package = site / f"tiny_part{number}"
        (package / "data").mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text("raise SystemExit('imported')\n")
        (package / "data" / f"part{number:02d}.bin").write_bytes(payload[(number - 1) * step : number * step])
        facts = site / f"tiny_part{number}-1.0.dist-info"
        facts.mkdir(exist_ok=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: {version}\n")


def tiny_catalog(payload: bytes) -> dict[str, CatalogEntry]:
    """A catalogue whose one model is `payload`."""
    entry = CatalogEntry(
        name="tiny",
        title="tiny",
        licence="Apache-2.0",
        size=len(payload),
        sha256=hashlib.sha256(payload).hexdigest(),
        origin="a test",
        parts=numbered("tiny-part{n}", "1.0", "tiny_part{n}/data/part{n:02d}.bin", COUNT),
        extra="tiny",
    )
    return {"tiny": entry}


def main() -> None:
    """Join the parts in the folder that the environment names."""
    site = Path(os.environ[SITE_VARIABLE])
    sys.path.insert(0, str(site))
    payload = b"".join(path.read_bytes() for path in sorted(site.glob("*/data/*.bin")))
    stages: list[str] = []
    registry.resolve("tiny", lambda stage, *_: stages.append(stage), catalog=tiny_catalog(payload))
    print("joined" if "join" in stages else "found")  # noqa: T201 - a program of its own


if __name__ == "__main__":
    main()
