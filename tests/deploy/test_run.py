# SPDX-License-Identifier: Apache-2.0
"""Script run.py: the packages it installs, its message when it may not install, and the commands it
starts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import run

MISSING = {"gcc": lambda: False, "libc6-dev": lambda: True, "libcdd-dev": lambda: False}
APT = "apt-get install -y --no-install-recommends gcc libcdd-dev"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Record commands instead of running them."""
    recorded: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        run,
        "step",
        lambda words, *commands, **_: recorded.extend(tuple(command) for command in commands),
    )
    return recorded


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets the installed programs and the user."""

    def choose(*names: str, user: int) -> None:
        monkeypatch.setattr(
            shutil, "which", lambda name: f"/usr/bin/{name}" if name in names else None
        )
        monkeypatch.setattr(os, "geteuid", lambda: user)

    return choose


def _sudo(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, code)
    )


def test_an_ordinary_user_is_shown_the_command_to_run_as_root(
    programs: Callable[..., None], steps: list[Any]
) -> None:
    programs("apt-get", user=1000)
    with pytest.raises(SystemExit) as stopped:
        run.system_packages(MISSING)
    assert stopped.value.code == f"please install as root: {APT}"
    assert not steps


def test_sudo_that_asks_for_a_password_is_not_used(
    programs: Callable[..., None], steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs("apt-get", "sudo", user=1000)
    _sudo(monkeypatch, 1)
    with pytest.raises(SystemExit, match="please install as root"):
        run.system_packages(MISSING)
    assert not steps


@pytest.mark.parametrize(("user", "prefix"), [(0, ()), (1000, ("/usr/bin/sudo", "-n"))])
def test_missing_programs_are_installed_and_checked_again(
    programs: Callable[..., None],
    steps: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    prefix: tuple[str, ...],
) -> None:
    programs("apt-get", "sudo", user=user)
    _sudo(monkeypatch, 0)
    with pytest.raises(
        SystemExit, match="does not find gcc libcdd-dev: run this with /usr/bin/python3"
    ):
        run.system_packages(MISSING)
    apt = (*prefix, "env", "DEBIAN_FRONTEND=noninteractive")
    assert steps == [(*apt, "apt-get", "update"), (*apt, *APT.split())]


def test_on_another_system_the_missing_programs_are_named(programs: Callable[..., None]) -> None:
    programs(user=0)
    with pytest.raises(SystemExit, match="which is not Debian"):
        run.system_packages(MISSING)


def test_if_nothing_is_missing_nothing_is_installed(
    programs: Callable[..., None], steps: list[Any]
) -> None:
    programs(user=1000)
    run.system_packages({"gcc": lambda: True})
    assert not steps


def test_the_test_set_asks_for_a_browser_and_a_database() -> None:
    assert set(run.TEST) - set(run.BUILD) == {
        "chromium-headless-shell",
        "postgresql",
        "strace",
        "wrk",
    }
    only_full = {
        "golang-go",
        "npm",
        "caddy",
        "chromium",
        "curl",
        "debootstrap",
        "default-jre-headless",
        "docker-compose",
        "firefox-esr",
        "r-base-core",
        "r-cran-broom",
        "r-cran-httr2",
        "r-cran-jsonlite",
        "r-cran-knitr",
        "r-cran-mass",
        "r-cran-survey",
        "r-cran-testthat",
        "systemd",
    }
    assert set(run.FULL) - set(run.TEST) == only_full
    assert set(run.BENCH) - set(run.TEST) == {"chromium"}


def test_benches_use_the_lock_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[Any] = []
    monkeypatch.setattr(run, "system_packages", lambda needs: installed.append(set(needs)))
    monkeypatch.setattr(run, "environment", installed.append)
    run.setup("bench")
    assert installed == [set(run.BENCH), "test"]


@pytest.fixture
def checkout(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files that the installation reads, with a separate environment folder."""
    shutil.copytree(root / "requirements", tmp_path / "requirements")
    for name in run.OWN:
        (tmp_path / name).mkdir()
        shutil.copy(root / name / "pyproject.toml", tmp_path / name)
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "VENV", tmp_path / ".venv")
    return tmp_path


@pytest.mark.parametrize(
    "changed", ["requirements/demo.txt", "requirements/build.txt", "server/pyproject.toml"]
)
def test_a_second_run_skips_and_a_changed_lock_does_not(
    checkout: Path, steps: list[Any], changed: str
) -> None:
    run.environment("demo")
    first = len(steps)
    run.environment("demo")
    assert len(steps) == first > 0
    with (checkout / changed).open("a") as file:
        file.write("\n")
    run.environment("demo")
    assert len(steps) == 2 * first


def test_everything_from_a_registry_is_hash_checked_and_builds_fetch_nothing(
    checkout: Path, steps: list[Any]
) -> None:
    run.environment("test")
    installs = [command for command in steps if "install" in command]
    assert installs
    for command in installs:
        assert "--no-build-isolation" in command
        # Without --no-deps, if a locked package requires a dependency with an extra (apiflask:
        # pydantic[email]), pip prefers a newer release of that dependency and then fails, because
        # the lock has no hash for it.
        assert "--no-deps" in command
        assert "--require-hashes" in command or "--editable" in command
    assert steps[-1] == (*installs[0][: installs[0].index("install")], "check")


def test_a_failed_step_shows_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    failing = [sys.executable, "-c", "import sys; sys.exit('no room on the disk')"]
    with pytest.raises(SystemExit) as stopped:
        run.step("trying", failing)
    assert "no room on the disk" in str(stopped.value.code)
    assert capsys.readouterr() == ("", "  trying … failed\n")
    with pytest.raises(SystemExit, match=r"no room on the disk\n\nfailed: .*\)\nfree some space$"):
        run.step("trying", failing, hint="free some space")


@pytest.mark.parametrize(
    ("arguments", "lock", "started"),
    [
        (["demo"], "demo", ["-m", "examples.demo"]),
        (["demo", "--port", "0"], "demo", ["-m", "examples.demo", "--port", "0"]),
        (["bench", "sdk", "--json"], "bench", ["bench/sdk.py", "--json"]),
        (["test", "--full", "-k", "a or b"], "full", ["--full", "-k", "a or b"]),
        (["test", "-x"], "test", ["-x"]),
        (["setup"], "demo", None),
    ],
)
def test_each_verb(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], lock: str, started: list[str] | None
) -> None:
    commands: list[Any] = []
    prepared: list[Any] = []
    monkeypatch.setattr(run, "setup", lambda lock, _paths: prepared.append(lock))
    monkeypatch.setattr(os, "execv", lambda _path, command: commands.append(command))
    monkeypatch.setattr(os, "chdir", lambda _path: None)
    run.main(arguments)
    assert prepared == [lock]
    if started is None:
        assert not commands
    else:
        [[python, *command_arguments]] = commands
        assert python == str(run.PYTHON)
        assert command_arguments[-len(started) :] == started
        assert (command_arguments[:2] == ["-m", "pytest"]) == (arguments[0] == "test")


@pytest.mark.parametrize(
    ("arguments", "has_workers"),
    [
        ([], True),
        (["-x", "-k", "a or b"], True),
        (["tests/frankly_protocol"], True),
        (["tests/deploy/test_run.py", "tests/deploy/test_locks.py"], True),
        (["tests/deploy/test_run.py"], False),
        (["tests/deploy/test_run.py::test_each_verb", "-x"], False),
    ],
)
def test_one_file_runs_without_workers(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], has_workers: bool
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(run, "setup", lambda _lock, _paths: None)
    monkeypatch.setattr(os, "execv", lambda _path, command: commands.append(command))
    monkeypatch.setattr(os, "chdir", lambda _path: None)
    run.main(["test", *arguments])
    [command] = commands
    assert (command[command.index("-n") + 1] != "0") == has_workers


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {"chromium-headless-shell", "postgresql", "strace", "wrk"}),
        (["-x", "-k", "a or b"], {"chromium-headless-shell", "postgresql", "strace", "wrk"}),
        (["tests"], {"chromium-headless-shell", "postgresql", "strace", "wrk"}),
        (["tests/frankly_protocol", "-x"], set()),
        (["tests/frankly_design/engine/test_engine.py::test_a"], set()),
        (["tests/frankly_server"], {"postgresql"}),
        (["tests/faults/test_order.py"], {"postgresql", "strace"}),
        (["tests/papers", "tests/browser/sdk"], {"chromium-headless-shell"}),
        (["tests/browser"], {"chromium-headless-shell"}),
    ],
)
def test_a_path_installs_what_its_folder_needs(arguments: list[str], expected: set[str]) -> None:
    assert set(run.packages_of("test", arguments)) - set(run.BUILD) == expected


def test_every_folder_of_the_table_exists_with_its_package(root: Path) -> None:
    assert set(run.NEEDED_BY) == set(run.FULL) - set(run.BUILD)
    assert all((root / path).exists() for named in run.NEEDED_BY.values() for path in named)


def _started(monkeypatch: pytest.MonkeyPatch, verb: str) -> dict[str, list[str]]:
    """Return the commands that a verb runs; a stub replaces the installation of the environment."""
    commands: dict[str, list[str]] = {}
    monkeypatch.setattr(run, "environment", lambda lock: commands.update({"lock": [lock]}))
    monkeypatch.setattr(run, "node_packages", lambda folder: None)
    monkeypatch.setattr(run, "run_all", lambda every: commands.update(every) or sys.exit(0))
    with pytest.raises(SystemExit) as exited:
        run.main([verb])
    assert exited.value.code == 0
    return commands


def test_quick_needs_no_system_package_and_runs_the_pure_tests(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setattr(run, "system_packages", lambda needs: pytest.fail(f"installs {needs}"))
    commands = _started(monkeypatch, "quick")
    assert set(commands) == {
        "lock", "ruff check", "ruff format", "import contracts", "mypy", "pure tests",
    }  # fmt: skip
    folders = [Path(name) for name in commands["pure tests"] if name.startswith("tests/")]
    assert len(folders) == 3
    assert all((root / folder).is_dir() for folder in folders)


def test_check_is_everything_static(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[Any] = []
    monkeypatch.setattr(run, "system_packages", installed.append)
    assert set(_started(monkeypatch, "check")) == {
        "lock", "ruff check", "ruff format", "import contracts", "mypy", "tsc", "tsc of the examples",
    }  # fmt: skip
    assert [set(needs) - set(run.BUILD) for needs in installed] == [{"npm"}]


def test_a_failing_command_is_shown_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {
        "fine": ["python", "-c", "print('fine')"],
        "broken": ["python", "-c", "print('the reason'); raise SystemExit(3)"],
        "also fine": ["python", "-c", ""],
    }
    with pytest.raises(SystemExit) as exited:
        run.run_all(commands)
    assert exited.value.code == "failed: broken"
    assert capsys.readouterr().out == "the reason\n\n"


@pytest.mark.parametrize(
    "arguments", [[], ["dance"], ["bench", "nothing-like-it"], ["setup", "--fast"], ["quick", "-x"]]
)
def test_a_wrong_command_line_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr(run, "setup", lambda lock: pytest.fail(f"installed {lock}"))
    with pytest.raises(SystemExit) as stopped:
        run.main(arguments)
    assert stopped.value.code == 2
    assert "usage: " in capsys.readouterr().err


def test_benches_are_listed_with_what_they_measure(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run.main(["bench"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(
        path.stem for path in (root / "bench").glob("[a-z]*.py")
    )
    assert all(len(line.split()) > 5 for line in lines)
    assert {"design", "sdk", "intake", "estimate", "scale", "browser"} <= {
        line.split()[0] for line in lines
    }
