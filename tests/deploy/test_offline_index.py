# SPDX-License-Identifier: Apache-2.0
"""Installation of a lock by run.py from a folder of small wheels, without network or builds."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import run
from tests.deploy.index import write_wheel

# Each test creates an environment and starts pip four times.
pytestmark = pytest.mark.slow

LOCKED = {"app": "1", "base": "1", "lib": "1", "mailer": "1"}

BACKEND = """\
import pathlib, shutil

def build_editable(folder, config_settings=None, metadata_directory=None):
    [wheel] = pathlib.Path().glob("*.whl")
    shutil.copy(wheel, folder)
    return wheel.name
"""
PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def _lock(index: Path, pins: dict[str, str]) -> str:
    """Return the text of a lock of these versions, with the hashes of the index."""
    digests = {
        name: hashlib.sha256((index / f"{name}-{version}-py3-none-any.whl").read_bytes())
        for name, version in pins.items()
    }
    return "".join(
        f"{name}=={version} \\\n    --hash=sha256:{digests[name].hexdigest()}\n"
        for name, version in pins.items()
    )


# The requirement without an extra is the easier one: pip resolves it in any case.
@pytest.fixture(params=[pytest.param("lib>=1", marks=pytest.mark.full_only), "lib[mail]>=1"])
def index(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose package requires app, app requires lib, and the index has a newer lib."""
    index = tmp_path / "index"
    index.mkdir()
    write_wheel(index, "tool", "1")
    write_wheel(index, "app", "1", request.param)
    for version in ("1", "2"):
        write_wheel(index, "lib", version, "base>=1", "mailer>=1; extra == 'mail'")
        write_wheel(index, "base", version)
        write_wheel(index, "mailer", version)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/build.txt").write_text(_lock(index, {"tool": "1"}))
    (tmp_path / "requirements/demo.txt").write_text(_lock(index, LOCKED))
    (tmp_path / "server").mkdir()
    (tmp_path / "server/pyproject.toml").write_text(PROJECT)
    (tmp_path / "server/backend.py").write_text(BACKEND)
    write_wheel(tmp_path / "server", "server", "1", "app>=1")
    monkeypatch.setattr(run, "PYTHON", tmp_path / run.PYTHON.relative_to(run.ROOT))
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(run, "OWN", ("server",))
    # The tests' environment has no pip, but the interpreter that created the environment has one.
    base = f"bin/python{sys.version_info.major}.{sys.version_info.minor}"
    monkeypatch.setattr(sys, "executable", str(Path(sys.base_prefix) / base))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return index


def _installed() -> dict[str, str]:
    """Return the versions of the packages in the environment, by name."""
    listing = """\
from importlib.metadata import distributions
for package in distributions():
    print(package.name, package.version)"""
    done = subprocess.run(
        [run.PYTHON, "-I", "-c", listing], check=True, capture_output=True, text=True
    )
    return dict(line.split() for line in done.stdout.splitlines())


def test_the_locked_versions_are_installed_although_newer_ones_exist(index: Path) -> None:
    # If pip resolved dependencies, it would choose lib 2 for `lib[mail]>=1` and refuse it, because the
    # lock has no hash for it.
    run.environment("demo")
    assert _installed() == LOCKED | {"tool": "1", "server": "1"}


@pytest.mark.parametrize("index", ["lib[mail]>=1"], indirect=True)
def test_a_lock_without_a_dependency_is_an_error_that_names_the_lock(index: Path) -> None:
    """A missing dependency of an extra (mailer) is not found here, but by test_locks.py."""
    lock = run.ROOT / "requirements/demo.txt"
    lock.write_text(_lock(index, {name: LOCKED[name] for name in ("app", "lib", "mailer")}))
    with pytest.raises(SystemExit) as stopped:
        run.environment("demo")
    message = str(stopped.value.code)
    assert message.startswith("lib 1 requires base, which is not installed.\n")
    assert message.endswith(run.INCOMPLETE.format(lock="demo"))
    assert "requirements/demo.txt lacks a dependency" in message
    assert not list(run.VENV.glob("installed-*")), "the next run would not install"
