# SPDX-License-Identifier: Apache-2.0
"""Releases: reproducible, with all required files and a bill of materials that matches the lock."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from frankly_protocol import __version__

from tools.release.__main__ import PROJECTS, build, checksums
from tools.release.npm import PACKAGES as NPM_PACKAGES
from tools.release.sbom import bill_of_materials

PACKAGES = {
    "frankly_protocol": "shared",
    "frankly_sdk": "client_sdk",
    "frankly_analyst": "analyst",
    "frankly_server": "server",
}
PLACES = ("server", "migrations", "client_sdk", "analyst", "shared")


def _copy(root: Path, folder: Path, *, mode: int, time: float) -> Path:
    """Copy the files that a build reads, with different permissions and times."""
    for name in PLACES:
        shutil.copytree(
            root / name,
            folder / name,
            ignore=shutil.ignore_patterns("__pycache__", "dist", "node_modules"),
        )
    for name in ("LICENSE", ".gitignore"):
        shutil.copy(root / name, folder / name)
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)
            os.utime(path, (time, time))
    return folder


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Path]]:
    root, folder = Path(__file__).resolve().parents[2], tmp_path_factory.mktemp("made")
    original = _copy(root, tmp_path_factory.mktemp("a"), mode=0o644, time=1_000_000_000)
    copy = _copy(original, tmp_path_factory.mktemp("a-longer-name"), mode=0o664, time=1_700_000_000)
    return build(folder / "one", original), build(folder / "two", copy)


def test_a_second_build_is_the_same_bytes(twice: tuple[list[Path], list[Path]]) -> None:
    first, second = twice
    assert len(first) == 2 * len(PROJECTS) + len(NPM_PACKAGES)
    assert checksums(first) == checksums(second)
    digest, _, name = checksums(first).splitlines()[0].partition("  ")
    assert (
        digest == hashlib.sha256(next(f for f in first if f.name == name).read_bytes()).hexdigest()
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_an_archive_contains_the_required_files(
    root: Path, twice: tuple[list[Path], list[Path]], package: str
) -> None:
    licence = (root / "LICENSE").read_bytes()
    [wheel] = [file for file in twice[0] if file.name.startswith(package) and file.suffix == ".whl"]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert f"{package}/py.typed" in names
        [metadata_name] = [name for name in names if name.endswith(".dist-info/METADATA")]
        [licence_name] = [name for name in names if name.endswith("licenses/LICENSE")]
        assert archive.read(licence_name) == licence
        metadata = archive.read(metadata_name).decode()
        assert f"Version: {__version__}\n" in metadata
        assert "License-Expression: Apache-2.0\n" in metadata
        assert not [name for name in names if re.search(r"test_|\.db$|\.pem$|__pycache__", name)]
    [source] = [file for file in twice[0] if file.name.startswith(package) and file.suffix == ".gz"]
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
        assert {
            "LICENSE",
            "PKG-INFO",
            "pyproject.toml",
            f"{package}/__init__.py",
            f"{package}/py.typed",
        } <= inside
        assert {member.uid for member in archive} == {0}


def test_the_bill_of_materials_is_the_lock(root: Path) -> None:
    lock = root / "requirements" / "runtime.txt"
    bill = json.loads(text := bill_of_materials(lock))
    assert text == bill_of_materials(lock)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(
        r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        bill["serialNumber"],
    )
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read_text(), re.MULTILINE)
    components = [(c["name"], c["version"]) for c in bill["components"]]
    assert (
        components
        == [(name, __version__) for name in ("frankly-protocol", "frankly-sdk", "frankly-server")]
        + [(f"@frankly/{name}", __version__) for name in ("sdk", "react", "vue", "surveyjs")]
        + pins
    )
    assert len({c["bom-ref"] for c in bill["components"]}) == len(components)
    hashes = [
        p["value"]
        for c in bill["components"]
        for p in c.get("properties", [])
        if p["name"].endswith("sha256")
    ]
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", lock.read_text()))
    [cdd] = [c for c in bill["components"] if c["name"] == "pycddlib"]
    assert "GPL" in json.dumps(cdd["licenses"])


def test_versions_agree_wherever_one_is_written(root: Path) -> None:
    assert f"\nversion: {__version__}\n" in (root / "CITATION.cff").read_text()
    for name in NPM_PACKAGES:
        package = json.loads((root / "client_sdk" / name / "package.json").read_text())
        wanted = package.get("peerDependencies", {}).get("@frankly/sdk", __version__)
        assert (package["version"], wanted) == (__version__, __version__), name
    lock = json.loads((root / "client_sdk/browser/package-lock.json").read_text())
    assert lock["version"] == lock["packages"][""]["version"] == __version__


@pytest.mark.parametrize("name", NPM_PACKAGES)
def test_an_npm_archive_contains_every_file_that_its_exports_name(
    root: Path, twice: tuple[list[Path], list[Path]], name: str
) -> None:
    package = json.loads((root / "client_sdk" / name / "package.json").read_text())
    file_name = package["name"].removeprefix("@").replace("/", "-")
    [made] = [file for file in twice[0] if file.name == f"{file_name}-{__version__}.tgz"]
    with tarfile.open(made) as archive:
        names = {member.removeprefix("package/") for member in archive.getnames()}
        inside = archive.extractfile("package/LICENSE")
        assert inside is not None
        assert inside.read() == (root / "LICENSE").read_bytes()
        assert {(member.uid, member.mode, member.mtime) for member in archive} == {
            (0, 0o644, 1577836800)
        }
    entries = [entry for entry in package["exports"].values() if isinstance(entry, dict)]
    exported = {path for entry in entries for path in entry.values()}
    assert {path.removeprefix("./") for path in exported} <= names
    # Modules that these files import from the same folder exist too
    for script in (path for path in names if path.endswith(".js")):
        text = (root / "client_sdk" / name / script).read_text("utf-8")
        folder = Path(script).parent
        for imported in re.findall(r"""(?:from|import\(?) ?["'](\./[\w.-]+)["']""", text):
            assert (folder / imported).as_posix() in names, (script, imported)
    assert not [
        path for path in names if re.search(r"node_modules|test_|tests/|\.env|package-lock", path)
    ]


SNIPPET = """\
import frankly_server.app, frankly_analyst
from frankly_protocol.audit import Claim
from frankly_sdk import Client, Policy

with Client.open("x", store="y.db", policy=Policy(cap="5")) as client:
    reveal_type(client.answer({"smokes": "no"}).status)
    client.answer("no")
"""


def _pip(python: Path, *arguments: str) -> str:
    """Run the base interpreter's pip for another Python, with the registry configured on this machine."""
    base = (
        Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    )
    command = [
        str(base),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(python),
        *arguments,
    ]
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.mark.full_only
@pytest.mark.parametrize("ending", [".whl", ".tar.gz"])
def test_archives_install_in_an_empty_environment(
    root: Path, twice: tuple[list[Path], list[Path]], tmp_path: Path, ending: str
) -> None:
    """With a user's dependencies, the packages start, contain licences, and pass type checks."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True
    )
    python = tmp_path / "empty/bin/python"
    _pip(
        python,
        "install",
        "--quiet",
        "--no-input",
        *(str(f) for f in twice[0] if f.name.endswith(ending)),
    )
    listed = {
        package["name"].replace("_", "-"): package["version"]
        for package in json.loads(_pip(python, "list", "--format=json"))
    }
    assert {listed[f"frankly-{name}"] for name in ("protocol", "sdk", "analyst", "server")} == {
        __version__
    }
    _pip(python, "check")
    [site] = (tmp_path / "empty/lib").glob("python3*/site-packages")
    licences = [*site.glob("frankly_*.dist-info/licenses/LICENSE")]
    assert [file.read_bytes() for file in licences] == 4 * [(root / "LICENSE").read_bytes()]
    outputs = [
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
        for command in (
            [
                str(python),
                "-c",
                "import frankly_sdk, frankly_server.app, frankly_analyst; print(frankly_sdk.__file__)",
            ],
            [str(python.with_name("frankly")), "--version"],
            [str(python.with_name("frankly")), "survey", "template", "health"],
        )
    ]
    assert outputs[0].startswith(str(site))
    assert outputs[1] == f"frankly {__version__}\n"
    assert "blocks:" in outputs[2]
    (tmp_path / "snippet.py").write_text(SNIPPET)
    checker = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(python),
        "--cache-dir",
        os.devnull,
    ]
    type_check = subprocess.run(
        [*checker, "snippet.py"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert 'Revealed type is "str"' in type_check.stdout, type_check.stdout + type_check.stderr
    assert re.findall(
        r"^snippet\.py:(\d+): error: .*\[([\w-]+)\]$", type_check.stdout, re.MULTILINE
    ) == [("7", "arg-type")]


BILLS = "cyclonedx-python-lib[json-validation]==11.12.0"
"""OWASP's library, which contains the schema; it is not among the tests' locked packages."""


@pytest.mark.full_only
def test_the_bill_of_materials_is_cyclonedx(root: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True
    )
    python = tmp_path / "empty/bin/python"
    _pip(python, "install", "--quiet", "--no-input", BILLS)
    code = """\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()))"""
    bill = bill_of_materials(root / "requirements" / "runtime.txt")
    wrong = (
        bill.replace('"specVersion": "1.6"', '"specVersion": 1.6'),
        bill.replace('"type": "library"', '"type": "lib"'),
    )
    outputs = [
        subprocess.run(
            [python, "-c", code],
            input=text,
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        ).stdout
        for text in (bill, *wrong)
    ]
    assert outputs[0] == "None\n"
    assert "None\n" not in outputs[1:]
