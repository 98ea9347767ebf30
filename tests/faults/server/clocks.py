# SPDX-License-Identifier: Apache-2.0
"""Server processes whose clock a test sets."""

import sys
from datetime import timedelta
from pathlib import Path

LOOK_S = 0.1
# The clock is the machine's clock plus the number of seconds in a file. The release thread checks
# more often than every ten seconds, so that tests are short.
_PROGRAM = """
import sys
from datetime import timedelta
from pathlib import Path
from frankly_protocol.clock import SystemClock
from frankly_server.cli import front
from frankly_server.intake import releasing
ahead, real = Path(sys.argv[1]), SystemClock.now
SystemClock.now = lambda clock: real(clock) + timedelta(seconds=float(ahead.read_text()))
releasing._LOOK_S = float(sys.argv[2])
front.main(sys.argv[3:])
"""


class ServerClock:
    """The clock of one server process or of several."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "ahead"
        self.set(timedelta(0))

    @property
    def program(self) -> tuple[str, ...]:
        """Command of a server with this clock, up to the verb."""
        return (sys.executable, "-c", _PROGRAM, str(self._file), str(LOOK_S))

    def set(self, ahead: timedelta) -> None:
        """Set the difference from the machine's clock."""
        new = self._file.with_suffix(".new")
        new.write_text(str(ahead.total_seconds()))
        new.rename(self._file)  # atomic, so that no process reads half a number
