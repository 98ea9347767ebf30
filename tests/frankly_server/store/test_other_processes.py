# SPDX-License-Identifier: Apache-2.0
"""SQLite file of a running server during commands: committed rows stay on disk, whichever process
closes the file.

SQLite's locks belong to a process, and closing any descriptor of the file releases all locks of the
process. The next process that closes the database then assumes that it is the last and removes the
log in use.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from frankly_server.store import Database, upgrade

SERVER = """
import sys
from contextlib import ExitStack
from frankly_server.store import Database

database = Database(sys.argv[1])
with ExitStack() as stack:
    for _ in range(3):  # as threads of a server hold connections of a pool
        stack.enter_context(database.reading("look"))
for day in sys.stdin:
    with database.transaction("write") as tx:
        tx.days.add("5e" * 16, day.strip(), {"accepted": 1})
    print("committed", flush=True)
"""


@pytest.fixture
def server(sqlite_url: str) -> Iterator[subprocess.Popen[str]]:
    database = Database(sqlite_url)
    upgrade(database)
    database.close()
    command = [sys.executable, "-c", SERVER, sqlite_url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def commit(server: subprocess.Popen[str], day: str) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{day}\n")
    server.stdin.flush()
    assert server.stdout.readline() == "committed\n"


def test_committed_rows_outlive_the_server(server: subprocess.Popen[str], sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    for round_ in range(3):
        commit(server, f"2026-06-0{round_ + 1}")
        beside = Database(sqlite_url)  # a command
        with beside.reading("look") as tx:
            assert len(tx.days.of_survey("5e" * 16)) == round_ + 1
        beside.close()
        with closing(sqlite3.connect(path)) as another:
            assert another.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert Path(f"{path}-wal").exists(), (
            "a command must not remove the log as if it were the last process"
        )
    commit(server, "2026-06-09")
    server.kill()
    server.wait()
    with closing(sqlite3.connect(path)) as after:
        assert after.execute("SELECT count(*) FROM day_counts").fetchone() == (4,)
