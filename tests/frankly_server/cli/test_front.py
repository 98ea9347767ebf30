# SPDX-License-Identifier: Apache-2.0
"""Exit codes and messages of the command `frankly`, for people and for programs."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import pytest
from frankly_protocol.errors import DocumentRejected, FranklyError, InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.cli import exits, front
from frankly_server.store import StoreUnavailable, UnsafeStore

from tests.frankly_server.cli.conftest import Frankly
from tests.frankly_server.web.site import SURVEY
from tests.processes import output_of

EXITS: dict[str, tuple[FranklyError, int]] = {
    "usage": (InvalidInput(Problem.USAGE, "x"), 2),
    "bad input": (InvalidInput(Problem.PRIOR_SUM, "x", "prior"), 3),
    "an unsafe setting": (UnsafeStore("x"), 3),
    "a key file": (InvalidInput(Problem.KEY_FILE, "x"), 3),
    "refused by the server": (FranklyError("x", code="forbidden"), 3),
    "answers unchanged": (InvalidInput(Problem.IDENTITY_MECHANISM, "x"), 4),
    "over budget": (InvalidInput(Problem.BUDGET_EXCEEDED, "x"), 4),
    "not certified": (InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, "x"), 4),
    "cells that could expose people": (InvalidInput(Problem.PRIOR_SMALL_CELLS, "x"), 4),
    "a document that breaks its promise": (DocumentRejected("privacy", "x"), 4),
    "no answer": (FranklyError("x", code="network"), 5),
    "database down": (StoreUnavailable("x"), 5),
    "a signature": (DocumentRejected("signature", "x"), 6),
    "a document that is not canonical": (DocumentRejected("canonical", "x"), 6),
}


@pytest.mark.parametrize("name", EXITS)
def test_exit_codes(name: str) -> None:
    error, code = EXITS[name]
    assert exits.exit_code(error) == code


@pytest.mark.parametrize("name", EXITS)
def test_problem_objects_keep_the_code(name: str) -> None:
    error, _ = EXITS[name]
    body = exits.problem_object(error)
    assert set(body) == {"type", "title", "status", "code", "detail", "field"}
    assert (body["code"], body["type"]) == (error.code, f"urn:frankly:problem:{error.code}")


def raising(error: BaseException) -> Any:
    def command(*_arguments: Any, **_options: Any) -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (InvalidInput(Problem.PRIOR_SUM, "it sums to 1.3", "prior"), 3),
        (RuntimeError("canary"), 1),
        (MemoryError(), 1),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_no_error_shows_a_trace(
    frankly: Frankly,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    as_json: bool,
) -> None:
    monkeypatch.setattr(front.cli, "make_context", raising(error))
    result = frankly("survey", "list", *(["--json"] if as_json else []))
    assert (result.code, result.out) == (code, "")
    assert "Traceback" not in result.err
    assert "canary" not in result.err
    assert 1 <= len(result.err.splitlines()) <= 3
    if as_json and code != 130:
        assert set(json.loads(result.err)) == {"type", "title", "status", "code", "detail", "field"}


def test_the_text_of_a_refusal(frankly: Frankly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        front.cli,
        "make_context",
        raising(InvalidInput(Problem.PRIOR_SUM, "it sums to 1.3", "prior")),
    )
    assert frankly("design").err.splitlines() == [
        "frankly: The prior does not sum to one. [prior_sum]",
        "  prior: it sums to 1.3",
    ]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["keys"], ["survey", "apply"], ["serve", "--port", "99999"], ["serve", "--port", "x"],
                  ["keys", "api", "--role", "viewer", "--label", "x"], ["survey", "apply", "/does/not/exist.yaml"]]
)  # fmt: skip
def test_wrong_command_lines_exit_2(frankly: Frankly, arguments: list[str]) -> None:
    assert frankly(*arguments).code == 2
    as_json = frankly(*arguments, "--json")
    assert as_json.code == 2
    assert as_json.problem["code"] == "usage"


@pytest.mark.parametrize(
    "verb", [[], *([verb] for verb in front.VERBS), ["keys", "init"], ["survey", "publish"]]
)
def test_every_verb_has_a_help_text(frankly: Frankly, verb: list[str]) -> None:
    result = frankly(*verb, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: frankly {' '.join(verb)}".rstrip())


def test_the_version_equals_that_of_the_packages(frankly: Frankly) -> None:
    result = frankly("--version")
    assert (result.code, result.out, result.err) == (
        0,
        f"frankly {metadata.version('frankly-server')}\n",
        "",
    )


def test_an_unknown_setting_is_refused(frankly: Frankly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRANKLY_DATABSE_URL", "sqlite:///secret-canary.db")
    result = frankly("migrate", "--json")
    assert (result.code, result.problem["code"], result.problem["field"]) == (
        3,
        "unsafe_setting",
        "FRANKLY_DATABSE_URL",
    )
    assert "canary" not in result.err


def test_help_is_quick_to_import() -> None:
    """The solver, the database and the web framework are imported only if a verb needs them."""
    code = "import sys; from frankly_server.cli import front; front.run(['--help']); print(*sys.modules)"
    printed = output_of(code)
    assert not {"numpy", "scipy", "cdd", "sqlalchemy", "flask"} & set(printed.split())


QUICK = ("admin", "backup", "counts", "doctor", "keys", "migrate", "release", "survey", "tokens")
HEAVY = {"numpy", "scipy", "highspy", "cdd", "flint", "alembic", "flask", "requests", "yaml", "pyxform", "openpyxl",
         "xlrd", "frankly_design.engine", "frankly_design.estimate", "frankly_server.analysis",
         "frankly_server.surveys.definition"}  # fmt: skip


def test_commands_that_solve_nothing_import_no_solver() -> None:
    """Importing the design engine takes as long as running `frankly survey list`."""
    modules = ", ".join(f"frankly_server.cli.{name}" for name in QUICK)
    code = f"import sys, {modules}, frankly_server.services; print(*sys.modules)"
    printed = output_of(code)
    assert not HEAVY & set(printed.split())


def test_a_list_of_surveys_imports_no_solver_while_it_runs(home: Path, frankly: Frankly) -> None:
    assert frankly("migrate").code == 0
    (home / "survey.yaml").write_bytes(SURVEY)
    assert frankly("survey", "apply", str(home / "survey.yaml")).code == 0
    code = "import sys; from frankly_server.cli import front; front.run(['survey', 'list']); print(*sys.modules)"
    printed = output_of(code)
    shown, modules = printed.rsplit("\n", 2)[0], printed.split()
    assert "habits" in shown
    assert not HEAVY & set(modules)


def _completed(*words: str) -> list[str]:
    """Return what bash offers after these words, by the lines of docs/operations.md."""
    script = f"""
eval "$(_FRANKLY_COMPLETE=bash_source frankly)"
COMP_WORDS=(frankly {" ".join(words)}) COMP_CWORD={len(words)}
_frankly_completion frankly
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    place = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "--norc", "-c", script]
    environment = os.environ | {"PATH": place}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_shell_completes_verbs_and_options() -> None:
    assert _completed("su") == ["survey"]
    assert _completed("survey", "pu") == ["publish"]
    assert _completed("estimates", "--comp") == ["--compare", "--completion"]


def test_verbs_are_completed_without_importing_them() -> None:
    code = "import sys; from frankly_server.cli import front; import click\n"
    code += "offered = front.cli.shell_complete(click.Context(front.cli), '')\n"
    code += "print(*[one.value for one in offered], sep=',', end='|'); print(*sys.modules)"
    offered, modules = output_of(code).split("|")
    assert set(offered.split(",")) >= set(front.VERBS)
    loaded = {f"frankly_server.cli.{name}" for name in ("survey", "estimates", "json_commands")}
    assert not loaded & set(modules.split())


def test_a_failure_is_one_object_on_stderr_and_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRANKLY_DATABASE_URL", "postgresql://nobody:canary@127.0.0.1:1/none")
    command = [sys.executable, "-m", "frankly_server.cli", "survey", "list", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (5, "")
    assert json.loads(result.stderr)["code"] == "unavailable"


def test_a_closed_pipe_is_no_error(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "frankly_server.cli", "--help"]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")
