# SPDX-License-Identifier: Apache-2.0
"""Run of the demo by its documented command, with few respondents."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

RESPONDENTS = 120


@dataclass(frozen=True)
class DemoRun:
    """Exit code, output and files of one run."""

    status: int
    output: str
    report: Path
    home: Path


def run_demo(folder: Path, survey: str = "affairs", respondents: int = RESPONDENTS) -> DemoRun:
    """Run the demo in a separate process; everything it writes stays under `folder`."""
    report, home = folder / "demo-report.html", folder / "home"
    options = ["--respondents", str(respondents), "--home", str(home), "--report", str(report)]
    process = subprocess.run(
        [sys.executable, "-m", "examples.demo", survey, *options],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    return DemoRun(process.returncode, process.stdout + process.stderr, report, home)
