# SPDX-License-Identifier: Apache-2.0
"""Minimal TCP proxy instead of Caddy: it uses replicas in turn and skips those that are down."""

import contextlib
import itertools
import socket
import threading
from collections import Counter
from types import TracebackType
from typing import Self

_PIECE = 65_536


class TcpProxy:
    """Listens on `port`; `taken` counts the connections of each replica."""

    def __init__(self, ports: list[int]) -> None:
        self.taken: Counter[int] = Counter()
        self._ports = ports
        self._turn = itertools.count()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        first = next(self._turn)
        for i in range(len(self._ports)):
            port = self._ports[(first + i) % len(self._ports)]
            with contextlib.suppress(OSError):
                server = socket.create_connection(("127.0.0.1", port), timeout=5)
                server.settimeout(None)
                self.taken[port] += 1
                threading.Thread(target=_pump, args=(client, server), daemon=True).start()
                _pump(server, client)
                return
        client.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until one side closes, then close both."""
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
