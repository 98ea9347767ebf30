# SPDX-License-Identifier: Apache-2.0
"""Integers at the limits of 32 and 64 bits in queries of the log, the keys and the audit trail,
which cause no server error."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frankly_server.web.site import Site, make_site

EDGES = [
    0, 1, 2**15, 2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**53 - 1, 10**16 - 1, 10**16, 2**63, 2**64,
]  # fmt: skip
ADDRESSES = (
    "/v1/log/entries?start={}",
    "/v1/log/leaves?size={}",
    "/v1/log/consistency?old={}&new={}",
    "/v1/log/consistency?old=0&new={}",
    "/v1/keys?version={}",
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A site that no test changes, on each kind of database."""
    home: Path = tmp_path_factory.mktemp("site")
    url = f"sqlite:///{home / 'frankly.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").create()
    site = make_site(home, url)
    yield site
    site.services.close()


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_number_causes_a_server_error(site: Site, address: str) -> None:
    for number in (*EDGES, -1, "1e3", "NaN", "0x10", " 1", "١"):
        answer = site.client.get(address.format(number, number))
        assert answer.status_code < 500, (address, number, answer.text)


def test_entries_beyond_the_log_are_empty(site: Site) -> None:
    for start in EDGES[2:9]:
        answer = site.client.get(f"/v1/log/entries?start={start}")
        assert answer.status_code == 200
        assert (answer.get_json()["entries"], answer.get_json()["size"] > 0) == ([], True)


def test_the_trail_before_any_position_is_read(site: Site) -> None:
    trail = site.services.accounts.trail
    everything = trail("main")
    for before in (2**31, 2**53):
        assert trail("main", before) == everything
