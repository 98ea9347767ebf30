# SPDX-License-Identifier: Apache-2.0
"""TCP proxy that distributes connections over several servers and can disconnect any server at any time."""

import contextlib
import copy
import itertools
import socket
import struct
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.faults.server.running import Running
from tests.ports import free_port

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER 0: closing sends RST, data in flight is lost


class Proxy:
    """Listens on a free port and forwards to local ports (`places`) in turn, except those that are
    cut off.

    taken : connections of each place. If `skips_down` is true, a place that refuses is skipped, as
    Caddy does; otherwise the client is disconnected.
    """

    def __init__(self, places: Sequence[int], *, skips_down: bool = False) -> None:
        self._places, self._skips_down = list(places), skips_down
        self.taken: Counter[int] = Counter()
        self._turns = itertools.count()
        self._guard = threading.Lock()
        self._away: set[int] = set()
        self._pairs: list[tuple[int, socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self.cut_connections = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for place in self._places:
            self.cut(place)

    def cut(self, place: int) -> None:
        """Reset every connection to a place, and open no connection until `restore`."""
        with self._guard:
            self._away.add(place)
            broken = [pair for pair in self._pairs if pair[0] == place]
            self._pairs = [pair for pair in self._pairs if pair[0] != place]
            self.cut_connections += len(broken)
        for _, *ends in broken:
            for end in ends:
                _break(end)

    def restore(self, place: int) -> None:
        """Allow new connections to a place again."""
        with self._guard:
            self._away.discard(place)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._connect(near)

    def _connect(self, near: socket.socket) -> None:
        with self._guard:
            reachable = [place for place in self._places if place not in self._away]
            first = next(self._turns)
            for i in range(len(reachable) if self._skips_down else min(1, len(reachable))):
                place = reachable[(first + i) % len(reachable)]
                with contextlib.suppress(OSError):
                    far = socket.create_connection(("127.0.0.1", place), timeout=5)
                    break
            else:
                _break(near)
                return
            self.taken[place] += 1
            far.settimeout(None)
            self._pairs.append((place, near, far))
        try:
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # the place was cut meanwhile; this thread must accept further connections
            _break(near)
            _break(far)
            return
        # Each of these threads closes both ends if one is gone, so the options are set before.
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side is gone, such as a killed server, so its client must not wait for a response.
        _break(source)
        _break(target)


def _break(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def another(first: Running, home: Path, database_port: int) -> Running:
    """Start a second server process for the same survey, which connects to the database through
    another port."""
    second = copy.copy(first)
    second.port, second.process, second.log = free_port(), None, home / "second.log"
    second.database_url = first.database_url.replace(
        f":{_port(first.database_url)}/", f":{database_port}/"
    )
    return second


def _port(url: str) -> int:
    return int(url.rpartition("/")[0].rpartition(":")[2])
