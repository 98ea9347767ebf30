# SPDX-License-Identifier: Apache-2.0
"""Order of system calls, by strace: the store is on disk before a connection for the report."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.faults.servers import Site, site

ANSWER = """
import sys
from pathlib import Path
from frankly_sdk import Client, Policy
link, store, key = sys.argv[1:4]
with Client.open(link, store, Policy(cap="2"), spread_s=0) as client:
    assert client.answer({"smokes": "yes"}, respondent=key).status == "sent"
"""
WRONG = """
import sys
from frankly_sdk._sealing import Sealing
seal = Sealing._seal
def connect_first(self, row):
    from frankly_sdk.transport import HttpTransport
    HttpTransport().get(self.document.collect_url, 100000)
    return seal(self, row)
Sealing._seal = connect_first
"""


def calls(served: Site, store: Path, key: str, log: Path, before: str = "") -> list[str]:
    """Run one answer under strace; return "journal" and "store" (syncs) and "connect" in order."""
    strace = shutil.which("strace")
    assert strace is not None, "strace is not installed: apt-get install strace"
    traced = [strace, "-f", "-y", "-e", "trace=fdatasync,fsync,connect", "-o", str(log)]
    run = [sys.executable, "-c", before + ANSWER, served.link, str(store), key]
    completed = subprocess.run([*traced, *run], capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    order = []
    for line in log.read_text().splitlines():
        call = re.sub(r"^\d+ +", "", line)
        if (
            call.startswith(("fdatasync(", "fsync("))
            and re.search(r"= 0$", call)
            and f"<{store}" in call
        ):
            order.append("journal" if "-journal>" in call else "store")
        elif call.startswith("connect(") and "AF_INET" in call:
            order.append("connect")
    return order


def test_the_store_is_synced_before_the_first_connect_in_every_run(
    full: bool, tmp_path: Path
) -> None:
    """200 runs with --full. The survey is stored, so only the report needs a connection."""
    runs = 200 if full else 2
    with site() as served:
        # Fetches survey and keys, and creates the salt of the respondents' names.
        assert "connect" in calls(served, tmp_path / "s.db", "first", tmp_path / "log")
        orders = [calls(served, tmp_path / "s.db", f"p{i}", tmp_path / "log") for i in range(runs)]
    for order in orders:
        sealed = order[: order.index("connect")]
        assert "journal" in sealed
        assert "store" in sealed, "the store itself is on disk, not only its journal"
        assert "journal" in sealed[sealed.index("store") :], (
            "the journal's end is on disk too, so the commit cannot be undone"
        )
    assert len(orders) == runs


def test_connecting_before_the_seal_is_detected(tmp_path: Path) -> None:
    with site() as served:
        calls(served, tmp_path / "s.db", "first", tmp_path / "log")
        order = calls(served, tmp_path / "s.db", "p", tmp_path / "log", before=WRONG)
    assert "store" not in order[: order.index("connect")]
    assert "store" in order
