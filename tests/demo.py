# SPDX-License-Identifier: Apache-2.0
"""Run of the demo by its documented command, with few respondents."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

RESPONDENTS = 120
_VERDICT = "So many misses mean that the margins are wrong."


@dataclass(frozen=True)
class DemoRun:
    """Exit code, output and files of one run."""

    status: int
    output: str
    report: Path
    home: Path

    def require_complete(self) -> None:
        """Assert that the run ended without an error and every report was stored once.

        A verdict against the margins is allowed if it may be chance: respondents draw real random
        bits, so one run in a thousand may end with it although all margins are right.
        """
        assert self.status == 0 or _VERDICT in self.output, self.output
        # The shares of a question are correlated, so many misses together are likelier than stated.
        for chance in re.findall(r"of so few or fewer: ([^)]+)\)", " ".join(self.output.split())):
            assert float(chance) > 1e-12, self.output


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
