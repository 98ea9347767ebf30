# SPDX-License-Identifier: Apache-2.0
"""Log rule: the largest log that a device checks, and the errors for wrong leaves."""

from pathlib import Path

import pytest
from frankly_protocol.errors import LogError
from frankly_protocol.trust import Checkpoint
from frankly_sdk._logged import LogRule
from frankly_sdk.store import Store

from tests.frankly_protocol.samples import NOW
from tests.frankly_protocol.trust.samples import ORIGIN, FakeLog, role
from tests.refusals import refusal

LOG = FakeLog(["sha256:" + f"{i:064x}" for i in range(3)])
HEAD = LOG.head().checkpoint
LEAVES = b"".join(LOG.tree().leaves(3))


def rule(store: Path, leaves: bytes, asked: list[tuple[str, int, str]]) -> LogRule:
    def fetch(path: str, limit: int, kind: str) -> bytes:
        asked.append((path, limit, kind))
        return leaves

    return LogRule(role(), "chain", Store(store), fetch, NOW, lambda _name: None)


def test_all_leaves_of_the_head_are_requested_and_not_a_byte_more(tmp_path: Path) -> None:
    asked: list[tuple[str, int, str]] = []
    assert rule(tmp_path / "s.db", LEAVES, asked)._tree(HEAD).root() == HEAD.root
    assert asked == [("/v1/log/leaves?size=3", 96, "application/octet-stream")]


@pytest.mark.parametrize("leaves", [LEAVES[:-1], LEAVES[:-32], LEAVES + b"\0", b""])
def test_a_wrong_number_of_leaves_is_a_descriptive_error(leaves: bytes, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="number of the log's leaves") as caught:
        rule(tmp_path / "s.db", leaves, [])._tree(HEAD)
    assert caught.value.field == "leaves"


def test_a_log_of_four_mebibytes_is_checked_and_a_larger_log_is_not_fetched(tmp_path: Path) -> None:
    asked: list[tuple[str, int, str]] = []
    device = rule(tmp_path / "s.db", b"", asked)
    error = refusal(LogError, device._tree, Checkpoint(ORIGIN, 131_072, b"\0" * 32))
    assert (error.field, asked[0][1]) == ("leaves", 4 * 2**20)
    error = refusal(LogError, device._tree, Checkpoint(ORIGIN, 131_073, b"\0" * 32))
    assert (error.field, len(asked)) == ("size", 1)
