# SPDX-License-Identifier: Apache-2.0
"""Order of system calls, from strace: the store is on disk before any connection is opened.

The sync client, asyncio and the background sender are traced, with all their threads.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.servers import Site, site
from tests.frankly_sdk.drivers import OPENERS

ROOT = Path(__file__).resolve().parents[2]
ANSWER = """
import sys
from frankly_sdk import Policy
from tests.frankly_sdk.drivers import OPENERS
name, link, store, key = sys.argv[1:5]
with OPENERS[name](link, store, Policy(cap="2"), spread_s=0) as client:
    assert client.answer({"smokes": "yes"}, respondent=key).status == "sent"
"""
WRONG = """
import sys
from frankly_sdk._sealing import Sealing
seal = Sealing.seal_row
def connect_first(self, row):
    from frankly_sdk.transport import HttpTransport
    HttpTransport().get(self.document.collect_url, 100000)
    return seal(self, row)
Sealing.seal_row = connect_first
"""


def calls(served: Site, store: Path, name: str, key: str, before: str = "") -> list[str]:
    """Run one answer under strace; return "journal" and "store" (syncs) and "connect" in order."""
    log = store.parent / "log"
    strace = shutil.which("strace")
    assert strace is not None, "strace is not installed: apt-get install strace"
    traced = [
        strace,
        "-f",
        "--seccomp-bpf",
        "-y",
        "-e",
        "trace=fdatasync,fsync,connect",
        "-o",
        str(log),
    ]
    run = [sys.executable, "-c", before + ANSWER, name, served.link, str(store), key]
    completed = subprocess.run([*traced, *run], cwd=ROOT, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    order = []
    for call in _completed(log.read_text()):
        if re.match(r"(fdatasync|fsync)\(.*= 0$", call) and f"<{store}" in call:
            order.append("journal" if "-journal>" in call else "store")
        elif call.startswith("connect(") and "AF_INET" in call:
            order.append("connect")
    return order


def _completed(log: str) -> Iterator[str]:
    """Yield the calls of a log: a sync counts once it has returned, even if another thread made a call in between."""
    begun: dict[str, str] = {}
    for line in log.splitlines():
        thread, _, call = line.partition(" ")
        call = call.lstrip()
        if call.endswith("<unfinished ...>") and not call.startswith("connect("):
            begun[thread] = call.removesuffix("<unfinished ...>")
        elif resumed := re.match(r"<\.\.\. \w+ resumed>", call):
            yield begun.pop(thread, "") + call[resumed.end() :]
        else:
            yield call  # a connection counts as soon as it starts


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    """A site, and a store that contains its survey, so that only the report needs a connection."""
    store = tmp_path_factory.mktemp("order") / "s.db"
    with site() as served:
        # Fetches survey and keys, and creates the salt of the respondents' names.
        assert "connect" in calls(served, store, "sync", "first")
        yield served, store


@pytest.mark.parametrize("name", OPENERS)
def test_the_store_is_synced_before_the_first_connect_in_every_run(
    name: str, full: bool, opened: tuple[Site, Path]
) -> None:
    """200 runs with --full."""
    runs = 200 if full else 1
    orders = [calls(*opened, name, f"{name} {i}") for i in range(runs)]
    for order in orders:
        sealed = order[: order.index("connect")]
        assert "journal" in sealed
        assert "store" in sealed, "the store itself must be on disk, not only its journal"
        assert "journal" in sealed[sealed.index("store") :], (
            "the journal's end must be on disk too, so that the commit cannot be undone"
        )
    assert len(orders) == runs


def test_connecting_before_the_seal_is_detected(opened: tuple[Site, Path]) -> None:
    order = calls(*opened, "sync", "wrong", before=WRONG)
    assert "store" not in order[: order.index("connect")]
    assert "store" in order


def test_a_sync_counts_from_its_return_on() -> None:
    log = """\
7 fdatasync(3</s.db> <unfinished ...>
8 connect(4, {sa_family=AF_INET} <unfinished ...>
7 <... fdatasync resumed>) = 0
8 <... connect resumed>) = 0
9 fsync(3</s.db>) = 0
"""
    assert [call.split("(")[0] for call in _completed(log) if "(" in call] == [
        "connect",
        "fdatasync",
        "fsync",
    ]
