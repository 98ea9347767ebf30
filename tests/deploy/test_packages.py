# SPDX-License-Identifier: Apache-2.0
"""Installed packages: the SDK with its few dependencies, and the server with its migrations."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

# requests, cryptography and their dependencies; older Pythons also need typing_extensions.
OF_THE_SDK = {
    "certifi", "cffi", "charset-normalizer", "cryptography", "frankly-protocol", "frankly-sdk", "idna", "pycparser",
    "requests", "urllib3",
}  # fmt: skip


def _pip(*arguments: str) -> str:
    # The tests' environment has no pip, but the interpreter that created the environment has one.
    base = (
        Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    )
    command = [str(base), "-m", "pip", "--disable-pip-version-check", *arguments]
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


OF_THE_ANALYST = {"certifi", "charset-normalizer", "frankly-analyst", "idna", "requests", "urllib3"}


@pytest.mark.parametrize(
    ("folders", "package", "allowed"),
    [
        (("shared", "client_sdk"), "frankly_sdk", OF_THE_SDK),
        (("analyst",), "frankly_analyst", OF_THE_ANALYST),
    ],
)
def test_the_client_installs_only_its_few_dependencies(
    root: Path,
    tmp_path: Path,
    folders: tuple[str, ...],
    package: str,
    allowed: set[str],
    full: bool,
) -> None:
    """The test installs wheels built in this environment; with --full, it installs sources that pip
    builds."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True
    )
    python = tmp_path / "empty/bin/python"
    ignored = shutil.ignore_patterns("node_modules")
    sources = [
        str(shutil.copytree(root / name, tmp_path / name, ignore=ignored)) for name in folders
    ]
    if not full:
        for source in sources:
            _hatchling(Path(source), "-t", "wheel", "-d", str(tmp_path / "wheels"))
        sources = [str(path) for path in (tmp_path / "wheels").glob("*.whl")]
        assert len(sources) == len(folders)
    _pip("--python", str(python), "install", "--no-input", "--no-compile", *sources)
    listed = json.loads(_pip("--python", str(python), "list", "--format=json"))
    assert {item["name"].lower().replace("_", "-") for item in listed} <= allowed
    heavy = "{'numpy', 'flask', 'frankly_server', 'pandas'}"
    loaded = f"import sys, {package}; print({heavy} & set(sys.modules) or 'nothing else')"
    completed = subprocess.run(
        [str(python), "-c", loaded], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert completed.stdout == "nothing else\n"


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the server's sdist and wheel as a release would, then build a wheel from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    for name in ("server", "migrations", "client_sdk/browser"):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules")
        shutil.copytree(root / name, folder / name, ignore=ignored)
    shutil.copy(root / "LICENSE", folder)
    _hatchling(folder / "server", "-t", "sdist", "-t", "wheel", "-d", str(folder / "dist"))
    [sdist] = (folder / "dist").glob("*.tar.gz")
    (folder / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(folder / "unpacked")], check=True)
    [unpacked] = (folder / "unpacked").iterdir()
    _hatchling(unpacked, "-t", "wheel", "-d", str(folder / "again"))
    return folder


def _hatchling(project: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *arguments],
        cwd=project,
        check=True,
        capture_output=True,
    )


@pytest.mark.parametrize("made_from", ["dist", "again"])
def test_the_server_carries_its_migrations_and_licence(
    root: Path, built: Path, made_from: str
) -> None:
    [wheel] = (built / made_from).glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [licence] = [name for name in names if name.endswith("/licenses/LICENSE")]
        assert archive.read(licence) == (root / "LICENSE").read_bytes()
    scripts = {path.relative_to(root).as_posix() for path in (root / "migrations").rglob("*.py")}
    assert scripts
    assert {f"frankly_server/{name}" for name in scripts} <= names
    assert "frankly_server/py.typed" in names
    assert {f"frankly_server/page/app.js{end}" for end in ("", ".br", ".gz")} <= names
