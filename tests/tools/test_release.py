# SPDX-License-Identifier: Apache-2.0
"""Releases: reproducible, complete, with a bill of materials; and packages that install by themselves."""

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from itertools import combinations
from pathlib import Path

import pytest
from frankly_protocol import __version__
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.index import Index
from tests.threads import listening
from tools.release import __main__ as release
from tools.release.__main__ import (
    PROJECTS,
    BuildFailed,
    NotReproducible,
    build_one,
    build_twice,
    checksums,
    copied,
    make_bundle,
)
from tools.release.sbom import bill_of_materials

PACKAGES = {
    "frankly_protocol": "shared",
    "frankly_design": "design",
    "frankly_sdk": "client_sdk",
    "frankly_analyst": "analyst",
    "frankly_server": "server",
}
OURS = tuple(name.replace("_", "-") for name in PACKAGES)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All archives of a release; building them twice gave the same bytes."""
    return build_twice(tmp_path_factory.mktemp("made"), with_bundle=False)


def test_the_checksums_are_those_of_the_archives(archives: list[Path]) -> None:
    assert len(archives) == 2 * len(PROJECTS) + 1
    assert archives == sorted(archives)
    for file, line in zip(archives, checksums(archives).splitlines(), strict=True):
        assert line == f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}"


def test_settings_of_the_builder_do_not_leave_out_what_a_package_carries(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HATCH_BUILD_NO_HOOKS", "true")
    build_one(root / "client_sdk", tmp_path, "wheel")
    [wheel] = tmp_path.iterdir()
    assert "frankly_sdk/_protocol/__init__.py" in _modules(wheel)


@pytest.mark.parametrize(
    "options",
    [("--key=KEY",), ("--key=KEY", "--signer=a", "--without-bundle"), ("--key=none", "--signer=a")],
)
def test_only_a_whole_release_is_signed(options: Sequence[str], tmp_path: Path) -> None:
    (tmp_path / "KEY").touch()
    with pytest.raises(SystemExit):
        release.main(
            [str(tmp_path), *(option.replace("KEY", str(tmp_path / "KEY")) for option in options)]
        )
    assert [path.name for path in tmp_path.iterdir()] == ["KEY"]


def test_builds_that_differ_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(folder: Path, root: Path) -> list[Path]:
        folder.mkdir()
        (folder / "same.whl").write_text("same")
        (folder / "x.whl").write_text(str(root))  # as if an archive named its place
        return sorted(folder.iterdir())

    monkeypatch.setattr(release, "build", build)
    with pytest.raises(NotReproducible, match=r"^two builds differ in x\.whl$"):
        build_twice(tmp_path / "made", with_bundle=False)
    assert not (tmp_path / "made").exists()


@pytest.mark.full_only
def test_one_command_builds_everything_and_signs_it(root: Path, tmp_path: Path) -> None:
    """The bundle too, by Node; the signature is verified as docs/install.md says."""
    key, made = tmp_path / "id_ed25519", tmp_path / "dist"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    command = [
        sys.executable,
        "-m",
        "tools.release",
        str(made),
        "--key",
        str(key),
        "--signer=alice",
    ]
    clone = tmp_path / "a clone"  # without what is not committed here
    subprocess.run(["git", "clone", "--quiet", str(root), str(clone)], check=True)
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("signed: SHA256SUMS.alice.sig\n")
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=made, check=True)
    assert len((made / "SHA256SUMS").read_text().splitlines()) == 2 * len(PROJECTS) + 2
    (made / "allowed_signers").write_text(f"alice {key.with_suffix('.pub').read_text()}")
    verify = "ssh-keygen -Y verify -f allowed_signers -I alice -n frankly-release -s SHA256SUMS.alice.sig"
    assert verify in (root / "docs/install.md").read_text("utf-8")
    for text, code in (((made / "SHA256SUMS").read_bytes(), 0), (b"others", 255)):
        checked = subprocess.run(
            verify.split(), cwd=made, input=text, capture_output=True, check=False
        )
        assert checked.returncode == code


@pytest.mark.full_only
def test_a_bundle_of_other_sources_is_refused(tmp_path: Path) -> None:
    browser = copied(tmp_path / "copy", 0o644, 1_000_000_000) / "client_sdk/browser"
    (browser / "src/budget.js").write_text(
        (browser / "src/budget.js").read_text() + "export const more = 1;\n"
    )
    with pytest.raises(NotReproducible, match="npm run bundle"):
        make_bundle(browser)


@pytest.mark.full_only
def test_a_file_that_no_source_makes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, copy = (copied(tmp_path / name, 0o644, 1_000_000_000) for name in ("one", "two"))
    for folder in (checkout, copy):
        (folder / "client_sdk/browser/page/extra.js").write_text("alert(1)")
    monkeypatch.setattr(release, "ROOT", checkout)
    with pytest.raises(NotReproducible, match=r"^page/ is not made from its sources"):
        make_bundle(copy / "client_sdk/browser")


@pytest.mark.parametrize("package", PACKAGES)
def test_an_archive_contains_the_required_files(
    root: Path, archives: list[Path], package: str
) -> None:
    licence = (root / "LICENSE").read_bytes()
    [wheel] = [file for file in archives if file.name.startswith(package) and file.suffix == ".whl"]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert f"{package}/py.typed" in names
        [licence_name] = [name for name in names if name.endswith("licenses/LICENSE")]
        assert archive.read(licence_name) == licence
        metadata = _metadata(wheel)
        assert f"Version: {__version__}\n" in metadata
        assert "License-Expression: Apache-2.0\n" in metadata
        assert not [name for name in names if re.search(r"test_|\.db$|\.pem$|__pycache__", name)]
    [source] = [file for file in archives if file.name.startswith(package) and file.suffix == ".gz"]
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
        == [(name, __version__) for name in OURS] + [("@frankly/sdk", __version__)] + pins
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
    package = json.loads((root / "client_sdk/browser/package.json").read_text())
    assert package["version"] == __version__
    # npm would ask its registry for a name of ours
    assert not [name for name in package["peerDependencies"] if "frankly" in name]
    lock = json.loads((root / "client_sdk/browser/package-lock.json").read_text())
    assert lock["version"] == lock["packages"][""]["version"] == __version__


def test_the_npm_archive_contains_every_file_that_its_exports_name(
    root: Path, archives: list[Path]
) -> None:
    folder = root / "client_sdk/browser"
    package = json.loads((folder / "package.json").read_text())
    [made] = [file for file in archives if file.name == f"frankly-sdk-{__version__}.tgz"]
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
    # Modules that these files import exist too
    for script in (path for path in names if path.endswith(".js")):
        for imported in re.findall(
            r"""(?:from|import\(?) ?["'](\.\.?/[\w./-]+)["']""",
            (folder / script).read_text("utf-8"),
        ):
            beside = os.path.normpath(Path(script).parent / imported)
            assert beside in names, (script, imported)
    assert not [
        path for path in names if re.search(r"node_modules|test_|tests/|\.env|package-lock", path)
    ]


def _named(archives: list[Path], package: str, ending: str) -> Path:
    [made] = [f for f in archives if f.name.startswith(f"{package}-") and f.name.endswith(ending)]
    return made


def _modules(wheel: Path) -> Mapping[str, bytes]:
    """Return the contents of a wheel, by path, without those of its .dist-info folder."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name
        }


def _metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode()


def test_no_two_distributions_have_a_file_in_common(archives: list[Path]) -> None:
    """So they can be installed in any order, and any of them can be removed."""
    files = {name: set(_modules(_named(archives, name, ".whl"))) for name in PACKAGES}
    for one, other in combinations(PACKAGES, 2):
        assert not files[one] & files[other], (one, other)
    for name, paths in files.items():
        assert {path.split("/")[0] for path in paths} == {name}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_imports_no_other_package_of_ours(
    root: Path, archives: list[Path], package: str
) -> None:
    """The modules are those of the checkout, in which only names in imports may differ."""
    sources = {
        f"{package}/_protocol": root / "shared/frankly_protocol",
        f"{package}/_design": root / "design/frankly_design",
        f"{package}/_analyst": root / "analyst/frankly_analyst",
        f"{package}/migrations": root / "migrations",
        package: root / PACKAGES[package] / package,
    }
    for path, data in _modules(_named(archives, package, ".whl")).items():
        if not path.endswith(".py"):
            continue
        place = next(place for place in sources if path.startswith(f"{place}/"))
        original = (sources[place] / path.removeprefix(f"{place}/")).read_bytes()
        tree = ast.parse(data)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} & {*PACKAGES} <= {package}
            if isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.split(".")[0] not in {*PACKAGES} - {package}, path
                node.module = _original_name(node.module, package)
        assert data == original or ast.dump(tree) == ast.dump(ast.parse(original)), path


def _original_name(module: str, package: str) -> str:
    for place in ("protocol", "design", "analyst"):
        module = re.sub(rf"^{package}\._{place}\b", f"frankly_{place}", module)
    return module


def test_a_folder_without_the_checkout_is_not_built(root: Path, tmp_path: Path) -> None:
    """The result would import a package of ours that the environment may lack or have from anywhere."""
    alone = tmp_path / "client_sdk"
    shutil.copytree(
        root / "client_sdk", alone, ignore=shutil.ignore_patterns("browser", "examples")
    )
    with pytest.raises(BuildFailed, match="shared/frankly_protocol: build from a whole checkout"):
        build_one(alone, tmp_path / "made", "wheel")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_source_archive_gives_the_same_wheel(
    archives: list[Path], tmp_path: Path, package: str
) -> None:
    # Python 3.11.2 of Debian 12 has no safe way to unpack an archive
    source = str(_named(archives, package, ".tar.gz"))
    subprocess.run(["tar", "-xzf", source, "-C", str(tmp_path)], check=True)
    [unpacked] = tmp_path.iterdir()
    build_one(unpacked, tmp_path / "made", "wheel")
    [again] = (tmp_path / "made").iterdir()
    first = _named(archives, package, ".whl")
    # only the order of the files in the archive differs
    assert _modules(again) == _modules(first)
    assert _metadata(again) == _metadata(first)


def test_the_server_carries_its_migrations_and_pages(root: Path, archives: list[Path]) -> None:
    names = set(_modules(_named(archives, "frankly_server", ".whl")))
    scripts = {path.relative_to(root).as_posix() for path in (root / "migrations").rglob("*.py")}
    assert scripts
    assert {f"frankly_server/{name}" for name in scripts} <= names
    assert {f"frankly_server/page/app.js{end}" for end in ("", ".br", ".gz")} <= names
    assert "frankly_server/browser/index.js" in names


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with listening(server := Index(tmp_path)):
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("projects", [*((project,) for project in PROJECTS), PROJECTS])
def test_no_name_of_ours_is_asked_of_an_index(
    root: Path, index: Index, projects: Sequence[str]
) -> None:
    """`pip install` of folders of a checkout; whoever registers our names elsewhere gets nothing."""
    python = Path(sys.executable)
    folders = [str(root / project) for project in projects]
    options = ("--dry-run", "--ignore-installed", "--no-build-isolation", "--no-input")
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PIP_")}
    environment |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index.url}
    said = _pip(python, "install", *options, *folders, environment=environment)
    ours = {
        name for name, folder in zip(OURS, PACKAGES.values(), strict=True) if folder in projects
    }
    would = said.rpartition("Would install ")[2].split()
    names = {canonicalize_name(name.rpartition("-")[0]) for name in would}
    assert names == index.asked | ours
    assert "cryptography" in index.asked or projects == ("analyst",)
    assert not [name for name in index.asked if name.startswith("frankly")]


WARNS = (
    "docs/install.md",
    "docs/troubleshooting.md",
    "RELEASING.md",
    "docs/adr/0053-packages-carry-what-they-need.md",
)


def test_no_text_installs_a_name_of_ours_from_an_index(root: Path) -> None:
    """In what we say, our packages are files or folders."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True)
    tells = re.compile(
        r"(?:pip|npm) (?:install|add)[^\n`]* ['\"]?(?:frankly[-_]\w+(?![-\w.]*\.(?:whl|tar))|@frankly/)"
        r"|install frankly-|frankly-(?:sdk|server|analyst|protocol|design)\["
    )
    for name in listed.stdout.decode().split("\0"):
        path = root / name
        is_text = path.suffix in {".py", ".md", ".html", ".js", ".R", ".yaml", ".json"}
        if is_text and path.is_file() and path != Path(__file__) and name not in WARNS:
            found = tells.search(path.read_text("utf-8", errors="replace"))
            assert found is None, (name, found)


# requests, cryptography and their dependencies; older Pythons also need typing_extensions.
OF_THE_ANALYST = {"certifi", "charset-normalizer", "frankly-analyst", "idna", "requests", "urllib3"}
OF_THE_SDK = OF_THE_ANALYST - {"frankly-analyst"} | {
    "cffi", "cryptography", "frankly-sdk", "pycparser",
}  # fmt: skip


@pytest.mark.parametrize(
    ("package", "allowed"), [("frankly_sdk", OF_THE_SDK), ("frankly_analyst", OF_THE_ANALYST)]
)
def test_a_client_installs_only_its_few_dependencies(
    archives: list[Path], tmp_path: Path, package: str, allowed: set[str], full: bool
) -> None:
    """With --full pip builds the source archive."""
    python = _empty(tmp_path)
    archive = _named(archives, package, ".tar.gz" if full else ".whl")
    _pip(python, "install", "--no-input", "--no-compile", str(archive))
    assert set(_versions(python)) <= allowed
    heavy = "{'numpy', 'flask', 'frankly_server', 'frankly_protocol', 'pandas'}"
    loaded = f"import sys, {package}; print({heavy} & set(sys.modules) or 'nothing else')"
    assert _said(python, tmp_path, "-c", loaded) == "nothing else\n"


USES = {
    "frankly_sdk": """\
from pathlib import Path
from frankly_sdk.testing import FakeServer, make_survey
server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
with server.open(Path("answers.db")) as client:
    receipt = client.answer({"smokes": "yes"}, patience_s=60)
Path("answers.db").unlink()
print("frankly_sdk", receipt.status)""",
    "frankly_server": """\
from frankly_server.cli import main
import frankly_server.app
main(["survey", "template", "health"])""",
    "frankly_design": """\
from fractions import Fraction
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.prior import Prior
claims = (answer_ldp(Fraction(1)),)
found = design(DesignRequest(Prior.from_rows([[1, 1, 1]]), claims))
print("frankly_design", "certified" if found.certified else "not certified")""",
    "frankly_analyst": "import frankly_analyst; print('frankly_analyst', frankly_analyst.Analyst.__name__)",
    "frankly_protocol": "from frankly_protocol.audit import Claim; print('frankly_protocol', Claim.__name__)",
}

SAID = {
    "frankly_sdk": "frankly_sdk sent",
    "frankly_server": "blocks:",
    "frankly_design": "frankly_design certified",
    "frankly_analyst": "frankly_analyst Analyst",
    "frankly_protocol": "frankly_protocol Claim",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [
        ("frankly_analyst", "frankly_protocol", "frankly_design", "frankly_sdk", "frankly_server"),
        pytest.param(
            (
                "frankly_server",
                "frankly_design",
                "frankly_sdk",
                "frankly_protocol",
                "frankly_analyst",
            ),
            marks=pytest.mark.full_only,
        ),
    ],
)
def test_packages_install_in_any_order_and_each_can_be_removed(
    archives: list[Path], tmp_path: Path, order: Sequence[str]
) -> None:
    """The first two are removed; the others go on working."""
    python = _empty(tmp_path)
    [site] = (tmp_path / "empty/lib").glob("python3*/site-packages")
    # the libraries of the tests' environment, without our packages: a .pth file in there is not read
    [others] = (Path(sys.prefix) / "lib").glob("python3*/site-packages")
    (site / "others.pth").write_text(str(others))
    for package in order:
        wheel = _named(archives, package, ".whl")
        _pip(python, "install", "--quiet", "--no-deps", "--no-compile", str(wheel))
    for removed in ((), order[:2]):
        if removed:
            _pip(python, "uninstall", "--quiet", "--yes", *removed)
        assert {path.name for path in site.glob("frankly_*") if "." not in path.name} == {
            package for package in order if package not in removed
        }
        for package in order[len(removed) :]:
            assert SAID[package] in _said(python, tmp_path, "-c", USES[package])


NOTEBOOK = """\
import json, pathlib, sys
cells = json.loads(pathlib.Path(sys.argv[1]).read_text("utf-8"))["cells"]
names = {}
for cell in cells:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), sys.argv[1], "exec"), names)
print("ran", len(cells), "cells with", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.slow
def test_the_mathematics_alone_runs_its_notebook(
    root: Path, archives: list[Path], tmp_path: Path, full: bool
) -> None:
    """In an environment with what the package requires and nothing else; with --full from the index."""
    python = _empty(tmp_path)
    wheel = _named(archives, "frankly_design", ".whl")
    if full:
        _pip(python, "install", "--no-input", "--no-compile", f"{wheel}[notebook]")
    else:
        _pip(python, "install", "--quiet", "--no-deps", "--no-compile", str(wheel))
        project = tomllib.loads((root / "design/pyproject.toml").read_text())["project"]
        required = [*project["dependencies"], *project["optional-dependencies"]["notebook"]]
        [site] = (tmp_path / "empty/lib").glob("python3*/site-packages")
        for name in _closure(required):
            _link(name, site)
    web = {
        "flask",
        "apiflask",
        "werkzeug",
        "jinja2",
        "requests",
        "sqlalchemy",
        "alembic",
        "psycopg",
        "click",
    }
    installed = {name.replace("-", "_") for name in _versions(python)}
    assert {"frankly_design", "numpy", "pycddlib"} <= installed
    assert not installed & (web | {"frankly_server", "frankly_protocol"})
    notebook = root / "examples/notebooks/optimal_mechanisms.ipynb"
    environment = {"MPLBACKEND": "Agg", "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [str(python), "-I", "-c", NOTEBOOK, str(notebook)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "ran"
    assert int(last[1]) > 10
    assert not set(last) & (web | {"frankly_server", "frankly_protocol"})


def _closure(required: Sequence[str]) -> set[str]:
    """Return the names of the installed distributions that requirements need, with all that these need."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in required]
    while waiting:
        one = waiting.pop()
        if canonicalize_name(one.name) in found or (
            one.marker and not one.marker.evaluate({"extra": ""})
        ):
            continue
        found.add(canonicalize_name(one.name))
        waiting += [Requirement(text) for text in metadata.distribution(one.name).requires or ()]
    return found


def _link(name: str, site: Path) -> None:
    """Put an installed distribution into another environment by links to its files and folders."""
    installed = metadata.distribution(name)
    for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
        (site / top).symlink_to(Path(str(installed.locate_file(top))))


def _empty(folder: Path) -> Path:
    """Create an environment and return its Python."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder / "empty")]
    subprocess.run(command, check=True)
    return folder / "empty/bin/python"


def _said(python: Path, folder: Path, *arguments: str) -> str:
    command = [str(python), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _versions(python: Path) -> dict[str, str]:
    return {
        canonicalize_name(package["name"]): package["version"]
        for package in json.loads(_pip(python, "list", "--format=json"))
    }


SNIPPET = """\
import frankly_server.app, frankly_analyst
from frankly_protocol.audit import Claim
from frankly_sdk import Client, Policy

with Client.open("x", store="y.db", policy=Policy(cap="5")) as client:
    reveal_type(client.answer({"smokes": "no"}).status)
    client.answer("no")
"""


def _pip(python: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run the base interpreter's pip for another Python, with the registry configured on this machine."""
    # The tests' environment has no pip, but the interpreter that created the environment has one.
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
    completed = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.mark.full_only
@pytest.mark.parametrize("ending", [".whl", ".tar.gz"])
def test_archives_install_in_an_empty_environment(
    root: Path, archives: list[Path], tmp_path: Path, ending: str
) -> None:
    """With a user's dependencies, the packages start, contain licences, and pass type checks."""
    python = _empty(tmp_path)
    _pip(
        python,
        "install",
        "--quiet",
        "--no-input",
        *(str(f) for f in archives if f.name.endswith(ending)),
    )
    listed = _versions(python)
    assert {
        listed[f"frankly-{name}"] for name in ("protocol", "design", "sdk", "analyst", "server")
    } == {__version__}
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
    python = _empty(tmp_path)
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
