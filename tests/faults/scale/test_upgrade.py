# SPDX-License-Identifier: Apache-2.0
"""Upgrade as described in docs/operations.md: the previous release serves while the schema is
migrated.

The previous release is the commit before the one that added the newest migration.
"""

import copy
import os
import re
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import pytest
from frankly_protocol.clock import SystemClock
from frankly_server.cli.doctor import examine
from frankly_server.store.schema import SCHEMA_VERSION

from tests.faults.scale.proxy import Proxy
from tests.faults.scale.test_two_servers import another
from tests.faults.server.running import PROGRAM, Devices, Running, check_kept
from tests.postgres import PostgresServer

RUN = """
import shlex, sys
from frankly_server.cli import front
for line in sys.argv[1:]:
    if code := front.run(shlex.split(line)):
        sys.exit(code)
"""
PACKAGES = ("analyst", "server", "shared", "client_sdk", "migrations")


@pytest.fixture(scope="module")
def release_before(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the packages of the previous release."""

    def git(*arguments: str) -> bytes:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], check=True, capture_output=True
        ).stdout

    (newest,) = (root / "migrations" / "versions").glob(f"{SCHEMA_VERSION}_*.py")
    path = str(newest.relative_to(root))
    try:
        # Search only the main line, including merges, because the migration may have another number
        # on a branch.
        log = ("log", "--first-parent", "-m", "--diff-filter=A", "--format=%H", "--", path)
        added = git(*log).decode().split()[-1]
        archive = git("archive", f"{added}^", *PACKAGES)
    except (OSError, IndexError, subprocess.CalledProcessError):
        pytest.skip("the previous release is taken from git's history, which is missing")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def program_of(folder: Path) -> tuple[str, ...]:
    """Return the `frankly` command of another checkout, up to the verb."""
    path = os.pathsep.join(str(folder / package) for package in PACKAGES[:-1])
    return ("env", f"PYTHONPATH={path}", *PROGRAM)


class Before(Running):
    """A server of the previous release, which also creates the tables, keys and survey."""

    def run(self, *commands: str, program: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run `frankly` commands on this server's home and database, all in one process."""
        environment: Mapping[str, str] = os.environ | {
            "FRANKLY_HOME": str(self.home),
            "FRANKLY_DATABASE_URL": self.database_url,
        }
        return subprocess.run(
            [*program[:-2], "-c", RUN, *commands], env=environment, capture_output=True, text=True
        )

    def _publish(self, survey: bytes) -> tuple[str, str]:
        file = self.home / "habits.yaml"
        file.write_bytes(survey)
        done = self.run(
            "keys init --yes",
            "migrate --json",
            f"survey apply {file}",
            "survey publish habits --json",
            program=self.program,
        )
        assert done.returncode == 0, done.stderr
        # The test would prove nothing if both releases were this checkout.
        (schema,) = re.findall(r'"schema": "(\d+)"', done.stdout)
        assert schema < SCHEMA_VERSION
        ((survey_id, digest),) = re.findall(r"/s/([0-9a-f]{32})#sha256=([0-9a-f]{64})", done.stdout)
        return survey_id, f"sha256:{digest}"


def test_the_previous_release_serves_while_the_next_one_migrates_and_starts(
    tmp_path: Path,
    release_before: Path,
    postgres: PostgresServer,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    full: bool,
) -> None:
    # Without --full the devices pause longer: starting servers, not reports, takes the time.
    reports, pause_s = (5_000, 0.01) if full else (100, 0.05)
    first = Before(tmp_path, postgres_url, production=True, program=program_of(release_before))
    second = another(first, tmp_path, postgres.port)
    second.program = PROGRAM
    try:
        first.start()
        with Proxy([first.port, second.port]) as front:
            site = copy.copy(first)
            site.port = front.port
            with Devices(site, threads=4, batch=10, pause_s=pause_s) as devices:
                devices.wait_for(reports)
                migrated = first.run("migrate --json", program=PROGRAM)
                assert f'"schema": "{SCHEMA_VERSION}"' in migrated.stdout, migrated.stderr
                devices.wait_for(len(devices.acknowledged) + reports)
                assert first.get("/health/ready")[0] == 200
                # Both releases serve side by side, then the last server of the previous one stops.
                second.start()
                devices.wait_for(len(devices.acknowledged) + reports)
                assert first.get("/health/ready")[0] == second.get("/health/ready")[0] == 200
                assert first.terminate()[0] == 0
                devices.wait_for(len(devices.acknowledged) + reports)
    finally:
        first.end()
        second.end()
    check_kept(first, devices)
    monkeypatch.setenv("FRANKLY_HOME", str(tmp_path))
    monkeypatch.setenv("FRANKLY_DATABASE_URL", postgres_url)
    assert "broken" not in {finding.state for finding in examine(SystemClock(), counts=True)}
    late = first.run("serve", program=program_of(release_before))
    assert late.returncode != 0
    assert "schema version" in late.stderr
