# SPDX-License-Identifier: Apache-2.0
"""Test kit for apps, used as an app would use it: without sockets, waiting or the SDK's own fakes."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from frankly_protocol.audit import exp_upper
from frankly_sdk import AlreadyAnswered, DocumentRejected, NetworkError, Policy, SurveyClosed
from frankly_sdk.testing import (
    Authority,
    FakeClock,
    FakeServer,
    drop,
    log_in_page,
    lose_receipt,
    make_survey,
    pass_on,
    redirect,
    status,
)

from tests.frankly_sdk.drivers import driver  # noqa: F401
from tests.narrowing import dense_of

QUESTIONS = {"smokes": ["no", "yes"], "walks": ["never", "weekly", "daily"]}
ANSWERS = {"smokes": "yes", "walks": "daily"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    def no_network(*_args: object) -> None:
        raise AssertionError("the kit must not touch the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    return FakeServer(make_survey(QUESTIONS, "0.7", strata={"region": ["north", "south"]}))


@pytest.mark.usefixtures("driver")
def test_an_integration_runs_end_to_end(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db") as client:
        assert client.survey.questions == {
            "smokes": ("no", "yes"),
            "walks": ("never", "weekly", "daily"),
        }
        assert client.answer(ANSWERS, strata={"region": "south"}).code == "accepted"
        with pytest.raises(AlreadyAnswered):
            client.answer(ANSWERS, strata={"region": "south"})
    (report,) = server.reports.values()
    assert report.strata == {"region": "south"}
    assert len(server.symbols()) == len(server.symbols(1)) == 1


def test_the_kits_tables_keep_the_promised_level(server: FakeServer) -> None:
    """From the definition, all ratios within columns are at most e^0.7, one exceeds e^0.69, and
    rows sum to 2^48."""
    for block, a in zip(server.document.blocks, (2, 3), strict=True):
        weights = dense_of(block.numbered_mechanism).weights
        assert [sum(row) for row in weights] == [2**48] * a
        worst = max(Fraction(max(column), min(column)) for column in zip(*weights, strict=True))
        assert exp_upper(Fraction("0.69")) < worst <= exp_upper(Fraction("0.7"))


STEPS = [
    ([drop()], "accepted", 2, 1),
    ([lose_receipt()], "duplicate", 2, 1),
    ([lose_receipt(), lose_receipt(), drop()], "duplicate", 4, 1),
    ([status(503, "unavailable", 7)], "accepted", 2, 1),
    ([status(502)], "accepted", 2, 1),
    ([log_in_page(), redirect()], "accepted", 3, 1),
    ([pass_on()], "accepted", 1, 1),
    ([status(410, "closed")], "closed", 1, 0),
]


@pytest.mark.parametrize(("steps", "code", "sent", "stored"), STEPS, ids=range(len(STEPS)))
@pytest.mark.usefixtures("driver")
def test_a_scripted_network(steps, code, sent, stored, server: FakeServer, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    server.network.then(*steps)
    with server.open(tmp_path / "s.db") as client:
        receipt = client.answer(ANSWERS, strata={"region": "south"}, patience_s=3600)
    bodies = [request.body for request in server.requests if request.body is not None]
    assert (receipt.code, len(bodies), len(server.reports)) == (code, sent, stored)
    assert len(set(bodies)) == 1


@pytest.mark.usefixtures("driver")
def test_retry_after_is_waited_for_on_the_fake_clock(server: FakeServer, tmp_path: Path) -> None:
    server.network.then(status(503, "unavailable", 7))
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS, strata={"region": "south"}, patience_s=60)
    assert 7 <= sum(server.clock.naps) <= 7.01


@pytest.mark.usefixtures("driver")
def test_offline_for_hours_then_back(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db") as client:
        server.network.online = False
        assert client.answer(ANSWERS, strata={"region": "north"}, patience_s=1).status == "queued"
        server.clock.advance(timedelta(hours=5))
        assert [receipt.status for receipt in client.flush(timeout_s=0)] == ["queued"]
        server.network.online = True
        assert [receipt.status for receipt in client.flush(timeout_s=0)] == ["sent"]
    server.network.online = False
    server.open(tmp_path / "s.db").close()  # from now on the survey opens without network
    with pytest.raises(NetworkError):
        server.open(tmp_path / "other.db")


REFUSED = [
    (lambda body: body.replace(b'"v":1', b'"v":2'), "field_type"),
    (lambda body: body.replace(b'"y":[', b'"y":[9,'), "symbol_unknown"),
    (lambda body: body.replace(b"south", b"moons"), "strata_invalid"),
    (
        lambda body: body.replace(b'"doc":"sha256:', b'"doc":"sha256:' + b"0" * 64)[:70] + b"",
        "json_invalid",
    ),
    (lambda body: body.replace(body[body.index(b"sha256:") + 7 :][:64], b"0" * 64), "doc_mismatch"),
]


@pytest.mark.parametrize(("bend", "code"), REFUSED, ids=range(len(REFUSED)))
def test_the_server_checks_reports_as_a_real_one_does(
    bend: Callable[[bytes], bytes], code: str, server: FakeServer, tmp_path: Path
) -> None:
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS, strata={"region": "south"})
    body = server.requests[-1].body
    assert body is not None
    reply = server.post(server.document.collect_url, bend(body), 1000)
    assert json.loads(reply.body)["code"] == code
    assert len(server.reports) == 1


def test_other_bodies_under_the_same_id_conflict(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS, strata={"region": "south"})
    body = server.requests[-1].body or b""
    reply = server.post(server.document.collect_url, body.replace(b"south", b"north"), 1000)
    assert (reply.status, json.loads(reply.body)["code"]) == (409, "id_conflict")


def test_windows_follow_the_clock(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db") as client:
        server.clock.set(server.document.closes + timedelta(minutes=11))
        with pytest.raises(SurveyClosed):
            client.answer(ANSWERS, strata={"region": "south"})
        server.clock.set(
            server.document.closes + timedelta(minutes=5)
        )  # the device tolerates an error of its clock
        assert client.answer(ANSWERS, strata={"region": "south"}).code == "closed"
    early = FakeServer(replace(server.document, opens=server.document.opens + timedelta(minutes=5)))
    with early.open(tmp_path / "e.db") as client:
        assert (
            client.answer(ANSWERS, strata={"region": "south"}, patience_s=0.02).code == "too_early"
        )


def test_one_authority_signs_many_surveys_and_can_be_shipped(tmp_path: Path) -> None:
    clock = FakeClock()
    authority = Authority(clock)
    for i in range(2):
        server = FakeServer(make_survey({"q": ["a", "b"]}, clock=clock), clock, authority)
        with server.open(tmp_path / "s.db", keys=authority.keys, policy=Policy(cap="2")) as client:
            assert client.answer({"q": "a"}).status == "sent", i
    stranger = FakeServer(make_survey({"q": ["a", "b"]}, clock=clock), clock)
    with pytest.raises(DocumentRejected):
        stranger.open(tmp_path / "s.db", keys=authority.keys)


def test_scripts_name_known_problems_only() -> None:
    with pytest.raises(ValueError, match="problem code"):
        status(503, "unavailible")


def test_a_survey_of_the_kit_may_have_anchors(tmp_path: Path) -> None:
    document = make_survey(
        {"smokes": ["no", "yes"]},
        drawn={"born": ["early", "late"], "eats": ["a", "b"], "birth": ["early", "late"]},
        anchors={"smokes": (3, 1), "born": (1, 1), "birth": "born"},
    )
    counts = {name: one.anchor and one.anchor.counts for name, one in document.questions.items()}
    assert counts == {"smokes": (3, 1), "born": (1, 1), "eats": None, "birth": ()}
    with FakeServer(document).open(tmp_path / "s.db") as client:
        said = str(client.survey.explain())
    assert "“born?” is known beforehand (A source for tests)" in said
    assert "“birth?” is asked a second time" in said
