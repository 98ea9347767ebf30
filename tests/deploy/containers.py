# SPDX-License-Identifier: Apache-2.0
"""What the Dockerfile and the compose file say, and their servers started by hand."""

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = "8000"
PASSWORD = "0123456789abcdef"


def instructions(image: list[tuple[str, str]], word: str) -> list[str]:
    """What follows this word, wherever it stands in the Dockerfile."""
    return [rest for found, rest in image if found == word]


def environment_of(image: list[tuple[str, str]]) -> dict[str, str]:
    """The image's environment."""
    return dict(pair.split("=", 1) for rest in instructions(image, "ENV") for pair in shlex.split(rest))


@contextmanager
def serving(command: list[str], environment: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A server that says where it answers; told to stop at the end, which it must do well."""
    with subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        try:
            # Both servers say where they answer once the port is open.
            said = []
            for line in server.stderr:
                said.append(line)
                if environment["FRANKLY_PORT"] in line:
                    break
            assert environment["FRANKLY_PORT"] in "".join(said), said
            yield server
        finally:
            server.terminate()
            server.communicate(timeout=30)
    assert server.returncode == 0
