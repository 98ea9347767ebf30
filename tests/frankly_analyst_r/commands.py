# SPDX-License-Identifier: Apache-2.0
"""R commands with a library and a profile of their own."""

import os
import subprocess
from pathlib import Path

from tests.frankly_analyst_r.site import PACKAGE


def r(*arguments: str, cwd: Path, **environment: str) -> str:
    """Run an R command and return its output; if the command fails, fail the test with the output."""
    done = subprocess.run(
        arguments, cwd=cwd, check=False, capture_output=True, text=True, timeout=600,
        env=os.environ | {
            "LC_ALL": "C.UTF-8", "R_LIBS_USER": str(cwd / "library"),
            "R_PROFILE_USER": str(cwd / "profile"),
        } | environment,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed[-6000:]
    return printed


def installed(folder: Path) -> None:
    """Install the package into the library of `folder`, where `r` finds it."""
    (folder / "library").mkdir()
    r("R", "CMD", "INSTALL", "-l", "library", str(PACKAGE), cwd=folder)
