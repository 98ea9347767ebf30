# SPDX-License-Identifier: Apache-2.0
"""Tokens: a device with a token is counted once; a device without a token draws nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import InvalidInput
from frankly_protocol.tokens import TokenRule
from frankly_sdk.testing import open_client
from frankly_sdk.transport import Reply

from tests.frankly_protocol.samples import NOW, ldp_block, survey
from tests.frankly_server.log.sites import Place
from tests.frankly_server.samples import spent

ORIGIN = "https://collect.example"
DOCUMENT = replace(survey(ldp_block()), token=TokenRule("invite"))
LINK = f"{ORIGIN}/s/{DOCUMENT.survey}#{DOCUMENT.digest.replace(':', '=')}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made_place = Place.make(tmp_path)
    made_place.publish(DOCUMENT)
    yield made_place
    made_place.services.close()


class Network:
    """A transport into the application that records the bodies sent."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.posted: list[bytes] = []

    def get(self, url: str, limit: int) -> Reply:
        answer = self.place.http.get(url.removeprefix(ORIGIN))
        return Reply(answer.status_code, answer.mimetype or "", None, answer.data)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        self.posted.append(body)
        answer = self.place.http.post(
            url.removeprefix(ORIGIN), data=body, content_type="application/json"
        )
        return Reply(answer.status_code, answer.mimetype or "", None, answer.data)

    def close(self) -> None:
        pass


def answered(network: Network, store: Path, token: str | None) -> Any:
    options: dict[str, Any] = {
        "transport": network,
        "clock": FixedClock(NOW),
        "sleep": lambda _s: None,
        "spread_s": 0,
    }
    with open_client(LINK, store, **options) as client:
        return client.answer({"affair": "yes"}, token=token)


def test_a_token_admits_one_report_of_the_usual_length(place: Place, tmp_path: Path) -> None:
    network = Network(place)
    first, second = place.services.invites.make(DOCUMENT.survey, 2)
    assert answered(network, tmp_path / "a.db", first).code == "accepted"
    refused = answered(network, tmp_path / "b.db", first)
    assert (refused.status, refused.code) == ("refused", "token_spent")
    assert answered(network, tmp_path / "c.db", second).code == "accepted"
    assert {len(body) for body in network.posted} == {DOCUMENT.report_length}
    assert spent(place.services.database, DOCUMENT.survey) == 2
    for store in ("a.db", "b.db", "c.db"):
        store_bytes = (tmp_path / store).read_bytes()
        assert first.encode() not in store_bytes
        assert second.encode() not in store_bytes


@pytest.mark.parametrize("token", [None, "", "x", "A" * 42])
def test_without_a_token_nothing_is_drawn_or_sent(
    place: Place, tmp_path: Path, token: str | None
) -> None:
    network = Network(place)
    with pytest.raises(InvalidInput) as refused:
        answered(network, tmp_path / "a.db", token)
    assert refused.value.code == "token_invalid"
    assert network.posted == []
    (valid_token,) = place.services.invites.make(DOCUMENT.survey, 1)
    assert answered(network, tmp_path / "a.db", valid_token).code == "accepted"
