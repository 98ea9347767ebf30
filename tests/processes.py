# SPDX-License-Identifier: Apache-2.0
"""Separate processes of Python."""

import subprocess
import sys


def output_of(code: str) -> str:
    """Return the output of Python code that must succeed."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
