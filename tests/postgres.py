# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL server for the tests, with a separate data folder, a free port, and durability on."""

import itertools
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from tests.ports import free_port


class PostgresServer:
    """A running server; `create()` returns the URL of a new empty database."""

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        self._account = _account()
        # The path is short, because a socket's path may have at most 107 bytes.
        self._home = Path(tempfile.mkdtemp(prefix="frankly-pg-", dir="/tmp"))
        self._password = secrets.token_urlsafe(24)
        self._numbers = itertools.count(1)
        self.port = free_port()

    @property
    def folder(self) -> Path:
        """The folder of all files of the server: data files, write-ahead log, and log."""
        return self._home

    def start(self) -> None:
        """Initialise the data folder and start the server, which takes about half a second."""
        secret = self._home / "password"
        secret.write_text(self._password)
        if self._account:
            for path in (self._home, secret):
                shutil.chown(path, self._account["user"], self._account["group"])
        data = self._home / "data"
        # --no-sync affects only this initialisation; the server runs with full durability.
        options = [
            "--no-locale",
            "--encoding=UTF8",
            "--username=postgres",
            "--auth=scram-sha-256",
            "--no-sync",
        ]
        self._run("initdb", "-D", str(data), f"--pwfile={secret}", *options)
        secret.unlink()
        listen = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._home}"
        )
        self._run(
            "pg_ctl",
            "-D",
            str(data),
            "-w",
            "-t",
            "60",
            "-l",
            str(self._home / "log"),
            "-o",
            listen,
            "start",
        )

    def stop(self) -> None:
        """Stop immediately and remove every file."""
        self.halt()
        shutil.rmtree(self._home)

    def halt(self) -> None:
        """Stop immediately, but keep the files."""
        self._run("pg_ctl", "-D", str(self._home / "data"), "-m", "immediate", "stop")

    def url(self, database: str) -> str:
        """Return the SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://postgres:{self._password}@127.0.0.1:{self.port}/{database}"

    def create(self) -> str:
        """Create an empty database and return its URL."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database; open connections are closed."""
        self.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def execute(self, statement: str) -> None:
        """Run one statement as superuser, outside any transaction."""
        with psycopg.connect(
            self.url("postgres").replace("+psycopg", ""), autocommit=True
        ) as connection:
            connection.execute(statement)

    def _run(self, tool: str, *arguments: str) -> None:
        # Output goes to a file, because the started server inherits the output and would keep a
        # pipe open.
        with (self._home / "output").open("w+") as output:
            command = [str(self.binaries / tool), *arguments]
            process = subprocess.run(
                command, check=False, cwd="/", stdout=output, stderr=output, **self._account
            )
            output.seek(0)
            if process.returncode:
                raise RuntimeError(f"{tool} failed: {output.read()}")


def find_binaries(chosen: str | None) -> Path:
    """Return the folder of initdb: the configured folder, or Debian's newest. Raises RuntimeError
    if there is none."""
    if chosen:
        if not (Path(chosen) / "initdb").is_file():
            raise RuntimeError(f"FRANKLY_PG_BIN={chosen} contains no initdb")
        return Path(chosen)
    candidates = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(candidates, key=lambda path: int(path.parts[4]), default=None)
    if newest is None:
        raise RuntimeError(
            "no PostgreSQL: as root, apt-get install -y postgresql, or set FRANKLY_PG_BIN to its bin"
        )
    return newest.parent


def _account() -> dict[str, Any]:
    """Return the account that runs the server: postgres instead of root, because PostgreSQL refuses root."""
    return (
        {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    )
