# SPDX-License-Identifier: Apache-2.0
"""Lock files: hashes of all files, no registry URL, all dependencies, equal versions."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.blocks import blocks, pages

LOCKS = ["build", "runtime", "demo", "test"]
PACKAGES = ["shared", "design", "client_sdk", "analyst", "server"]


def _pins(root: Path, lock: str) -> dict[tuple[str, str], list[str]]:
    """Return the hashes of each requirement in a lock, by (name, rest of the line)."""
    text = (root / "requirements" / f"{lock}.txt").read_text()
    pins: dict[tuple[str, str], list[str]] = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        first, *hashes = entry.split(" \\\n")
        pin = re.fullmatch(r"([A-Za-z0-9._-]+)(==[^\s;]+(?: ; .+)?)", first.strip())
        assert pin is not None, first
        name, version = pin.groups()
        pins[canonicalize_name(name), version] = [line.strip() for line in hashes]
    return pins


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_one_version_with_hashes(root: Path, lock: str) -> None:
    for requirement, hashes in _pins(root, lock).items():
        assert hashes, requirement
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in hashes), (
            requirement
        )


@pytest.mark.parametrize("suffix", ["in", "txt"])
@pytest.mark.parametrize("lock", LOCKS)
def test_no_address_of_a_registry(root: Path, lock: str, suffix: str) -> None:
    text = (root / "requirements" / f"{lock}.{suffix}").read_text()
    assert not re.search(r"://|@ |index-url|find-links|trusted-host", text)


@pytest.mark.parametrize(("smaller", "larger"), [("runtime", "demo"), ("demo", "test")])
def test_a_larger_lock_keeps_the_versions_of_the_smaller(
    root: Path, smaller: str, larger: str
) -> None:
    small, large = _pins(root, smaller), _pins(root, larger)
    versions = {(name, pin.partition(" ")[0]) for name, pin in large}
    missing = {
        (name, pin)
        for name, pin in small
        if "win32" not in pin and (name, pin.partition(" ")[0]) not in versions
    }
    assert not missing


@pytest.mark.parametrize("package", PACKAGES)
def test_every_declared_dependency_is_locked(root: Path, package: str) -> None:
    project = tomllib.loads((root / package / "pyproject.toml").read_text())
    locked = {name: Requirement(name + pin).specifier for name, pin in _pins(root, "runtime")}
    for text in project["project"]["dependencies"]:
        declared = Requirement(text)
        if declared.name.startswith("frankly-"):
            continue
        [exact] = locked[canonicalize_name(declared.name)]
        assert declared.specifier.contains(exact.version), text


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_requires_what_the_packages_that_it_carries_require(
    root: Path, package: str
) -> None:
    def required(folder: Path) -> set[str]:
        project = tomllib.loads((folder / "pyproject.toml").read_text())
        return {str(Requirement(text)) for text in project["project"]["dependencies"]}

    project = tomllib.loads((root / package / "pyproject.toml").read_text())
    hooks = project["tool"]["hatch"]["build"].get("hooks", {}) if package != "shared" else {}
    carried = hooks.get("custom", {}).get("carried", {})
    for place in carried.values():
        folder = (root / package / place).parent
        if place.rpartition("/")[2].startswith("frankly_"):
            assert required(folder) <= required(root / package), place


def _locked_versions(root: Path, lock: str) -> dict[str, str]:
    """Return the versions in a lock, by name, that pip installs on this platform."""
    lines = [Requirement(name + pin) for name, pin in _pins(root, lock)]
    return {
        line.name: str(line.specifier).removeprefix("==")
        for line in lines
        if line.marker is None or line.marker.evaluate()
    }


def _projects(root: Path) -> dict[str, dict[str, Any]]:
    """Return the `project` tables of our own packages, by name."""
    tables = [
        tomllib.loads((root / folder / "pyproject.toml").read_text())["project"]
        for folder in PACKAGES
    ]
    return {table["name"]: table for table in tables}


def _required(root: Path, lock: str) -> Iterator[Requirement]:
    """Yield the requirements in an `.in` file and in the files that it includes."""
    for line in (root / "requirements" / f"{lock}.in").read_text().splitlines():
        if line.startswith("-r "):
            yield from _required(root, line.removeprefix("-r ").removesuffix(".in"))
        elif match := re.fullmatch(r"\./(\w+)(\[.+\])?", line):
            folder, extras = match.groups(default="")
            project = tomllib.loads((root / folder / "pyproject.toml").read_text())["project"]
            yield Requirement(project["name"] + extras)
        elif not line.startswith("#"):
            yield Requirement(line)


def _dependencies(name: str, extra: str, projects: Mapping[str, Any]) -> list[Requirement]:
    """Return the dependencies on this platform of a package without an extra ("") or of an extra.

    Our own packages' are read from pyproject.toml, because the metadata of an editable installation
    may be older.
    """
    if name in projects:
        project = projects[name]
        texts = project["optional-dependencies"][extra] if extra else project["dependencies"]
    else:
        texts = distribution(name).requires or []
    parsed = [Requirement(text) for text in texts]
    return [one for one in parsed if one.marker is None or one.marker.evaluate({"extra": extra})]


def _unlocked(root: Path, lock: str, pins: Mapping[str, str]) -> set[str]:
    """Return the packages (name==version) in the closure of an `.in` file that `pins` lack.

    The closure follows every requirement with its extras, in the metadata of the installed
    packages; `pip check` ignores extras. `pins` are versions by name.
    """
    projects = _projects(root)
    waiting = list(_required(root, lock))
    followed: set[tuple[str, str]] = set()
    unlocked: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        version = projects[name]["version"] if name in projects else distribution(name).version
        assert requirement.specifier.contains(version, prereleases=True), requirement
        if name not in projects and pins.get(name) != version:
            unlocked.add(f"{name}=={version}")
        new = {(name, canonicalize_name(extra)) for extra in requirement.extras} | {(name, "")}
        for _, extra in new - followed:
            waiting += _dependencies(name, extra, projects)
        followed |= new
    return unlocked


@pytest.mark.parametrize("lock", [*LOCKS[1:], pytest.param("full", marks=pytest.mark.full_only)])
def test_the_closure_of_the_requirements_is_locked(root: Path, lock: str) -> None:
    assert _unlocked(root, lock, _locked_versions(root, lock)) == set()


@pytest.mark.parametrize(
    "name",
    [
        "email-validator",  # apiflask: pydantic[email]
        "psycopg-binary",  # frankly-server: psycopg[binary]
        "dnspython",  # email-validator
        "flask",  # in pyproject.toml
    ],
)
def test_a_missing_line_and_another_version_are_found(root: Path, name: str) -> None:
    pins = _locked_versions(root, "runtime")
    version = pins.pop(name)
    assert _unlocked(root, "runtime", pins) == {f"{name}=={version}"}
    assert _unlocked(root, "runtime", pins | {name: f"{version}.1"}) == {f"{name}=={version}"}


def test_extras_in_the_requirements_are_followed(root: Path) -> None:
    """`./server[parquet,duckdb]`, `./analyst[files,models]` and `./design[notebook]` are in test.in only."""
    extras = {"pyarrow", "duckdb", "pyreadstat", "matplotlib"}
    assert not extras & _locked_versions(root, "runtime").keys()
    pins = _locked_versions(root, "test")
    versions = {f"{name}=={pins.pop(name)}" for name in extras}
    assert _unlocked(root, "test", pins) == versions


def test_documented_installations_of_a_lock_resolve_nothing_and_are_checked(root: Path) -> None:
    documented = [
        block
        for page in pages(root)
        for block in blocks(page.read_text(encoding="utf-8"))
        if re.search(r"-r requirements/\w+\.txt", block.body)
    ]
    assert documented
    for block in documented:
        installs = [command for command in block.commands if " install " in command]
        assert all("--no-deps" in command for command in installs)
        assert all("--require-hashes" in command for command in installs if " -r " in command)
        assert block.commands[-1] == "pip check"


NO_WHEELS = {"pycddlib": "Linux and macOS, and Windows from Python 3.14 on"}


@pytest.mark.full_only
@pytest.mark.parametrize("system", ["linux", "macos", "windows"])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_locked_package_has_a_wheel(
    root: Path, tmp_path: Path, version: str, system: str
) -> None:
    """All but those of NO_WHEELS, which docs/install.md names; the test needs a network."""
    pins = re.split(r"\n(?=\S)", (root / "requirements/test.txt").read_text().strip())
    with_wheels = [pin for pin in pins if pin.partition("==")[0] not in NO_WHEELS]
    assert len(with_wheels) == len(pins) - len(NO_WHEELS)
    (tmp_path / "lock.txt").write_text("\n".join(with_wheels))
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "install", "--dry-run", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "-r", str(tmp_path / "lock.txt")]
    command += ["--target", str(tmp_path / "none")]
    command += ["--python-version", version, "--python-platform", system]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Would install \d+ packages", done.stderr)


def test_all_packages_have_one_version(root: Path) -> None:
    projects = [
        tomllib.loads((root / package / "pyproject.toml").read_text())["project"]
        for package in PACKAGES
    ]
    [version] = {project["version"] for project in projects}
    for project in projects:
        assert not [line for line in project["dependencies"] if line.startswith("frankly")]
    assert (
        f'__version__ = "{version}"' in (root / "shared/frankly_protocol/__init__.py").read_text()
    )
