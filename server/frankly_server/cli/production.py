# SPDX-License-Identifier: Apache-2.0
"""gunicorn, set up for one container: one worker process of many threads, watched and replaced by its master.

One process, because limits and metrics are of a process: more of them are more containers, each scraped by itself.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from frankly_server.cli.serving import DRAIN_S
from frankly_server.web import logs

_WORKER_TIMEOUT_S: Final = 60
_KEEP_ALIVE_S: Final = 75  # longer than proxies keep theirs: the proxy closes first, so none writes into a closed one


class Quiet(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's messages hold client addresses and paths: only who complained, and of what kind of error, is kept."""

    def setup(self, cfg: Any) -> None:
        """Send both of gunicorn's loggers through the allow-list, and write no access log."""
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.handlers[:] = [logs.LibraryHandler()]
        self.error_log.setLevel(logging.WARNING)
        self.access_log.handlers[:] = []

    def access(self, *_arguments: Any) -> None:
        """Write nothing."""


class Production(BaseApplication):  # type: ignore[misc]
    """A checked application under gunicorn, which ends with exit code 0 on SIGTERM once requests are answered."""

    def __init__(self, application: Any, *, host: str, port: int, threads: int, ready: Callable[[int], None]) -> None:
        """Set everything up; `ready` is called with the port once it is listened on."""
        self._application = application
        self._options = {
            "bind": f"{f'[{host}]' if ':' in host else host}:{port}",
            "workers": 1,
            "worker_class": "gthread",
            "threads": threads,
            "backlog": 1024,
            "worker_connections": 1000,
            "timeout": _WORKER_TIMEOUT_S,
            "graceful_timeout": int(DRAIN_S),
            "keepalive": _KEEP_ALIVE_S,
            "worker_tmp_dir": "/dev/shm",  # noqa: S108 - the heartbeat's file: memory, in a container that is read-only
            "control_socket_disable": True,
            "forwarded_allow_ips": "",
            "logger_class": Quiet,
            "when_ready": lambda arbiter: ready(arbiter.LISTENERS[0].sock.getsockname()[1]),
        }
        super().__init__()

    def load_config(self) -> None:
        """Set the options; nothing is read from files or the environment."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the application, made and checked before any worker is forked."""
        return self._application
