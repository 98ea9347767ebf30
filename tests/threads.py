# SPDX-License-Identifier: Apache-2.0
"""Threads of tests: concurrent calls, and servers that listen while a test runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from threading import Thread
from typing import Any


def concurrently(act: Callable[..., object], *calls: tuple[Any, ...]) -> None:
    """Call a function in a separate thread for each tuple of arguments, and wait for all threads."""
    threads = [Thread(target=act, args=arguments) for arguments in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def listening(server: HTTPServer) -> Iterator[str]:
    """Serve from a thread until the block ends; yield the origin."""
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
