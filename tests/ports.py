# SPDX-License-Identifier: Apache-2.0
"""Free ports for servers that the tests start, each used by one test process only.

A port found by binding to 0 and closing again may be taken, before its server binds it, by another
test process or by any outgoing connection. So these ports lie below the range that Linux uses for
connections (32768 and up), and each is locked by this process until it ends.
"""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

_RANGE = range(20_000, 32_000)
_LOCKS = Path(tempfile.gettempdir()) / f"frankly-ports-{os.getuid()}"
_held: list[IO[str]] = []


def free_port() -> int:
    """Return a loopback port that nothing listens on, reserved for this process."""
    _LOCKS.mkdir(mode=0o700, exist_ok=True)
    # In random order, so that processes rarely try the same port.
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        lock = (_LOCKS / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:  # another process has it, or something listens there
            lock.close()
            continue
        _held.append(lock)
        return port
    raise RuntimeError("every port from 20000 to 31999 is taken")
