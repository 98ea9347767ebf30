# SPDX-License-Identifier: Apache-2.0
"""Static checks of every change: lint, types, and the direction of imports."""

import ast
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
CHECKS = {
    "lint": ["-m", "ruff", "check", "."],
    # `run.py quick` and --full read the types of the tests too, which take as long as the rest.
    "types": ["-m", "mypy", *(name for name in MYPY["files"] if name != "tests")],
    "import directions": [
        "-c",
        "from importlinter.cli import lint_imports_command as main; main()",
    ],
    "types of the tests": ["-m", "mypy"],
}

# Modules that each package may import besides the standard library: its declared dependencies.
DEPENDENCIES = {
    "shared/frankly_protocol": {"cryptography", "frankly_protocol"},
    "design/frankly_design": {
        *("cdd", "flint", "frankly_design", "frankly_protocol", "highspy", "numpy"),
        *("matplotlib", "pandas", "pydantic", "pydantic_core", "scipy"),
    },
    "client_sdk/frankly_sdk": {"cryptography", "frankly_protocol", "frankly_sdk", "requests"},
}

# Libraries of the mathematics and of the server, with the only folders or modules that may import them.
HOMES = {
    "cdd": ["numeric/rays.py"],
    "flint": ["numeric/rational.py"],
    "highspy": ["numeric/lazy.py"],
    "matplotlib": ["interface/shown.py"],
    "pandas": ["interface/shown.py"],
    "openpyxl": ["surveys/xlsform_workbook.py"],
    "pyxform": ["surveys/xlsform_workbook.py"],
    "xlrd": ["surveys/xlsform_workbook.py"],
    "sqlalchemy": ["store"],
    "alembic": ["store"],
    "flask": ["web", "app.py"],
    "apiflask": ["web", "app.py"],
    "waitress": ["cli"],
    "click": ["cli"],
    "rich": ["cli"],
}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=name, marks=[pytest.mark.full_only] * (command == ["-m", "mypy"]))
        for name, command in CHECKS.items()
    ],
)
def test_check_finds_nothing(root: Path, command: list[str]) -> None:
    completed = subprocess.run(
        [sys.executable, *command], cwd=root, check=False, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr


@pytest.mark.parametrize("folder", DEPENDENCIES)
def test_a_package_imports_what_it_declares(root: Path, folder: str) -> None:
    allowed = DEPENDENCIES[folder] | sys.stdlib_module_names
    undeclared = {
        (str(path), name) for path, name in _imports(root / folder) if name not in allowed
    }
    assert not undeclared


@pytest.mark.parametrize("folder", ["papers", "bench/_design", "bench/_form"])
def test_research_needs_the_mathematics_alone(root: Path, folder: str) -> None:
    users = {path.name for path, name in _imports(root / folder) if name == "frankly_server"}
    assert users <= {"__main__.py"}, "only the command of the papers uses the server's console"


def test_nothing_lies_loose_in_the_server_and_the_mathematics(root: Path) -> None:
    """Mathematics has a home; a new file at the top needs a room, or a reason here."""
    design, server = root / "design/frankly_design", root / "server/frankly_server"
    assert {path.stem for path in server.glob("*.py")} == {
        *("__init__", "app", "services", "settings")
    }
    assert {path.stem for path in design.glob("*.py")} == {"__init__"}
    assert len({path.parent for path in design.glob("*/__init__.py")}) <= 12


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_imported_only_in_its_home(root: Path, library: str) -> None:
    users = [
        path.relative_to(folder)
        for folder in (root / "design/frankly_design", root / "server/frankly_server")
        for path, name in _imports(folder)
        if name == library
    ]
    homes = [Path(home) for home in HOMES[library]]
    assert users, f"no module imports {library}: remove its row and the dependency"
    assert not [str(user) for user in users if not any(user.is_relative_to(home) for home in homes)]


@pytest.mark.parametrize(
    "folder", ["server", "design", "shared", "client_sdk", "analyst", "bench", "tools"]
)
def test_only_the_formatter_breaks_lines(root: Path, folder: str) -> None:
    """Tables of tests and papers may keep their rows (`fmt: skip`); other code may not."""
    marked = [path for path in (root / folder).rglob("*.py") if "fmt: skip" in path.read_text()]
    assert not marked


@cache  # the server's source is parsed once for all libraries
def _imports(folder: Path) -> frozenset[tuple[Path, str]]:
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {(path, alias.name.partition(".")[0]) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add((path, node.module.partition(".")[0]))
    return frozenset(found)
