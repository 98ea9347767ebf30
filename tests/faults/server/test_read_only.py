# SPDX-License-Identifier: Apache-2.0
"""File systems and databases that become read-only: no partial files and no lost reports."""

import json
import re
import shlex
from pathlib import Path

import pytest
from frankly_protocol.clock import SystemClock
from frankly_server.cli import front
from frankly_server.cli.doctor import examine
from frankly_server.keys import Keyring

from tests.faults.server.disks import failing_disk, small_disk
from tests.faults.server.running import Devices, Running, check_kept, check_refusal, wait_until
from tests.postgres import PostgresServer


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Operator":
    return Operator(monkeypatch, capsys)


class Operator:
    """Runs `frankly` commands in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def sees(self, server: Running) -> None:
        """Use the environment of a server."""
        self._monkeypatch.setenv("FRANKLY_HOME", str(server.home))
        self._monkeypatch.setenv("FRANKLY_DATABASE_URL", server.database_url)

    def refused(self, command: str) -> tuple[int, str]:
        """Run a command that fails; return its exit code and the problem's detail."""
        code = front.run([*shlex.split(command), "--json"])
        problem = json.loads(self._capsys.readouterr().err)
        return code, f"{problem['field']}: {problem['detail']}"

    def findings(self) -> dict[str, tuple[str, str]]:
        """Map each check of `frankly doctor` to its state and finding."""
        return {finding.what: (finding.state, finding.words) for finding in examine(SystemClock())}


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_commands_on_a_read_only_home(tmp_path: Path, operator: Operator) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with small_disk(home, 32) as disk:
        server = Running(home, f"sqlite:///{home / 'frankly.db'}")
        server.log = tmp_path / "log"
        operator.sees(server)
        server.start()
        with Devices(server) as devices:
            devices.wait_for(20)
        server.terminate()
        disk.set_read_only(True)
        before = files(home)
        with pytest.raises(AssertionError):
            server.start()
        assert "the database cannot be used: its file cannot be opened" in server.log.read_text()
        for command in (
            "migrate",
            "release --now",
            "survey pause habits",
            f"backup create {tmp_path / 'backup.zip'}",
        ):
            code, detail = operator.refused(command)
            assert code == 5, command
            assert "is its folder missing or read-only?" in detail, command
        for command in ("keys rotate --publisher --yes", "keys init --force --yes"):
            code, detail = operator.refused(command)
            assert code == 3, command
            assert str(home) in detail, command
            assert (
                "Read-only file system: nothing is half written; may this user write there"
                in detail
            )
        findings = operator.findings()
        assert {what for what, (state, _) in findings.items() if state == "broken"} == {
            "database",
            "disk",
        }
        # SQLite cannot even open a file if it may not create the log beside it.
        assert re.search("yours to write|missing or read-only", findings["database"][1])
        assert files(home) == before
        assert not (tmp_path / "backup.zip").exists()
        disk.set_read_only(False)
        server.start()
        try:
            with devices:
                devices.wait_for(len(devices.acknowledged) + 20)
        finally:
            server.end()
        assert front.run(["keys", "rotate", "--publisher", "--yes"]) == 0
        assert Keyring(home / "keys", SystemClock()).trusted().version == 2
        check_kept(server, devices)


def test_the_disk_of_a_running_server_fails(tmp_path: Path, operator: Operator) -> None:
    """On an error, Linux makes ext4 read-only, even for files that are open for writing."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with failing_disk(folder, tmp_path / "image") as disk:
        home = folder / "home"
        home.mkdir(mode=0o700)
        server = Running(home, f"sqlite:///{home / 'frankly.db'}")
        server.log = tmp_path / "log"
        operator.sees(server)
        server.start()
        try:
            with Devices(server, batch=20) as devices:
                devices.wait_for(100)
            # The disk fails before reports are sent, because during the error Linux 6.18 reports
            # success to some callers of fsync whose bytes are not on disk.
            disk.fail()
            with devices:
                wait_until(lambda: server.get("/health/ready")[0] == 503)
                check_refusal(server, devices)
                assert server.get("/health/live")[0] == 200
                assert "see the system log" in server.log.read_text()
                assert operator.findings()["database"][0] == "broken"
                assert operator.refused("keys rotate --publisher --yes")[0] == 3
                server.kill()
                disk.repair()
                server.start()
                assert server.get("/health/ready")[0] == 200
                devices.wait_for(len(devices.acknowledged) + 100)
        finally:
            server.end()
        check_kept(server, devices)


@pytest.fixture
def read_only(postgres: PostgresServer, postgres_url: str) -> "ReadOnly":
    return ReadOnly(postgres, postgres_url)


class ReadOnly:
    """A database that becomes a standby at a failover: sessions end, and new sessions may only read."""

    def __init__(self, postgres: PostgresServer, url: str) -> None:
        self._postgres, self.url = postgres, url
        self._name = url.rpartition("/")[2]

    def begin(self) -> None:
        """Allow only reading."""
        self._postgres.execute(
            f"ALTER DATABASE {self._name} SET default_transaction_read_only = on"
        )
        self._postgres.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self._name}'"
        )

    def end(self) -> None:
        """Allow writing in new sessions; existing sessions stay read-only."""
        self._postgres.execute(f"ALTER DATABASE {self._name} RESET default_transaction_read_only")


def test_postgresql_becomes_read_only(
    tmp_path: Path, read_only: ReadOnly, operator: Operator
) -> None:
    server = Running(tmp_path, read_only.url, production=True)
    operator.sees(server)
    server.start()
    message = "it is read-only: is FRANKLY_DATABASE_URL that of the primary"
    try:
        with Devices(server, batch=20) as devices:
            devices.wait_for(100)
            read_only.begin()
            wait_until(lambda: server.get("/health/ready")[0] == 503)
            check_refusal(server, devices)
            assert server.get("/health/live")[0] == 200
            assert server.get(f"/v1/surveys/{server.survey}/document")[0] == 200
            assert message in server.log.read_text()
            assert message in operator.findings()["database"][1]
            for command in ("release --now", "survey pause habits"):
                code, detail = operator.refused(command)
                assert (code, message in detail) == (5, True), command
            backup = tmp_path / "backup.zip"
            assert front.run(["backup", "create", str(backup)]) == 0  # a backup only reads
            read_only.end()
            wait_until(lambda: server.get("/health/ready")[0] == 200)
            devices.wait_for(len(devices.acknowledged) + 100)
    finally:
        server.end()
    check_kept(server, devices)


def test_a_server_starts_on_a_read_only_postgresql_and_recovers_by_itself(
    tmp_path: Path, read_only: ReadOnly
) -> None:
    server = Running(tmp_path, read_only.url, production=True)
    read_only.begin()
    server.start()
    try:
        assert "No report can be stored: the database: it is read-only" in server.log.read_text()
        assert server.get("/health/ready")[0] == 503
        # The pool opens many connections while the database is read-only.
        with Devices(server) as devices:
            wait_until(lambda: len(devices.attempts) >= 16)
            read_only.end()
            devices.wait_for(100)
            refused = sum(sent.status == 503 for sent in devices.attempts)
            devices.wait_for(len(devices.acknowledged) + 200)
            assert sum(sent.status == 503 for sent in devices.attempts) == refused
        assert server.get("/health/ready")[0] == 200
    finally:
        server.end()
    check_kept(server, devices)
