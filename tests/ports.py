# SPDX-License-Identifier: Apache-2.0
"""Free ports for servers that the tests start; each port is used by only one test process.

If a test bound port 0 and closed the socket, another test process or an outgoing connection could
take the port before the server binds it. Therefore these ports lie below the range that Linux uses
for outgoing connections (32768 and up), and this process locks each port until the process ends.
"""

import atexit
import fcntl
import os
import random
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

_RANGE = range(20_000, 32_000)
_LOCKS = Path(tempfile.gettempdir()) / f"frankly-ports-{os.getuid()}"
_held = ExitStack()
atexit.register(_held.close)


def free_port() -> int:
    """Return a loopback port that nothing listens on, reserved for this process."""
    _LOCKS.mkdir(mode=0o700, exist_ok=True)
    # The order is random, so that processes rarely try the same port.
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        lock = (_LOCKS / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:  # another process has locked the port, or a server listens on it
            lock.close()
            continue
        _held.enter_context(lock)
        return port
    raise RuntimeError("every port from 20000 to 31999 is taken")
