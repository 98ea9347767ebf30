# SPDX-License-Identifier: Apache-2.0
"""Runner of the SDK under test: any program with the commands init, refresh and answer
(docs/conformance.md)."""

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

VARIABLE = "CONFORMANCE_COMMAND"
OURS = [sys.executable, "-m", "frankly_sdk.conformance"]


@dataclass(frozen=True)
class Outcome:
    """Exit code and JSON object of a command, read from stdout if the code is 0, otherwise from stderr."""

    status: int
    body: dict[str, Any]
    text: str

    @property
    def code(self) -> str:
        """The code of the receipt or the problem."""
        return str(self.body["code"])


Run = Callable[[str, Any], Outcome]


def command_line() -> list[str] | None:
    """Return the command in the environment variable, or None for our own implementation."""
    return shlex.split(os.environ[VARIABLE]) if VARIABLE in os.environ else None


def process(command: Sequence[str]) -> Run:
    """Run every command as a separate process."""

    def run(name: str, request: Any) -> Outcome:
        text = request if isinstance(request, str) else json.dumps(request)
        completed = subprocess.run(
            [*command, name], input=text, capture_output=True, text=True, timeout=60, check=False
        )
        return _outcome(completed.returncode, completed.stdout, completed.stderr)

    return run


def in_this_process(name: str, request: Any) -> Outcome:
    """Call our own implementation without starting a process, which is ten times as fast."""
    from frankly_sdk import conformance

    text, out, err = (
        request if isinstance(request, str) else json.dumps(request),
        io.StringIO(),
        io.StringIO(),
    )
    return _outcome(
        conformance.main([name], io.StringIO(text), out, err), out.getvalue(), err.getvalue()
    )


def _outcome(status: int, out: str, err: str) -> Outcome:
    written, unused = (err, out) if status else (out, err)
    assert not unused, "the other stream must be empty"
    body = json.loads(written)
    assert isinstance(body, dict)
    if status:
        assert {"type", "title", "status", "code", "detail", "field"} <= set(body)
    return Outcome(status, body, written)
