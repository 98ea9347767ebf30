# SPDX-License-Identifier: Apache-2.0
"""Lock files: hashes of all files, no registry URL, all dependencies, equal versions."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = ["build", "runtime", "demo", "test"]
PACKAGES = ["shared", "client_sdk", "analyst", "server"]


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


def test_all_packages_have_one_version(root: Path) -> None:
    projects = [
        tomllib.loads((root / package / "pyproject.toml").read_text())["project"]
        for package in PACKAGES
    ]
    [version] = {project["version"] for project in projects}
    for project in projects:
        own_packages = {line for line in project["dependencies"] if line.startswith("frankly-")}
        assert own_packages <= {f"frankly-protocol=={version}", f"frankly-analyst=={version}"}
    assert (
        f'__version__ = "{version}"' in (root / "shared/frankly_protocol/__init__.py").read_text()
    )
