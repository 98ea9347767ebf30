# SPDX-License-Identifier: Apache-2.0
"""Invite codes and personal links in the SDK: the report carries the token that the code stands for."""

from pathlib import Path

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.invite_codes import new_code, token_of_code
from frankly_protocol.trust.tokens import encode_token
from frankly_sdk.testing import FakeServer, make_survey, open_client

from tests.frankly_sdk.drivers import driver  # noqa: F401

ANSWER = {"smokes": "yes"}


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", "yes"]}, token=TokenRule("invite")))


def sent_token(server: FakeServer) -> str | None:
    [report] = server.reports.values()
    return report.token


@pytest.mark.usefixtures("driver")
def test_a_code_is_sent_as_its_token(server: FakeServer, tmp_path: Path) -> None:
    code = new_code()
    with server.open(tmp_path / "s.db") as client:
        assert client.answer(ANSWER, token=code.lower().replace("-", " ")).status == "sent"
    assert sent_token(server) == encode_token(token_of_code(code, server.document.survey))


@pytest.mark.usefixtures("driver")
def test_a_personal_link_needs_no_token(server: FakeServer, tmp_path: Path) -> None:
    code = new_code()
    link = f"{server.link}&invite={code}&id=person-7"
    with open_client(link, tmp_path / "s.db", transport=server, clock=server.clock) as client:
        assert client.answer(ANSWER).status == "sent"
    assert sent_token(server) == encode_token(token_of_code(code, server.document.survey))
    for request in server.requests:
        for kept in (code, "person-7"):
            assert kept not in request.url
            assert kept.encode() not in (request.body or b"")


def test_a_mistyped_code_draws_nothing_and_can_be_corrected(
    server: FakeServer, tmp_path: Path
) -> None:
    code = new_code()
    wrong = ("1" if code[0] != "1" else "2") + code[1:]
    with server.open(tmp_path / "s.db") as client:
        with pytest.raises(InvalidInput) as refused:
            client.answer(ANSWER, token=wrong)
        assert refused.value.field == "token"
        assert "typing mistake" in refused.value.detail
        assert wrong not in str(refused.value)
        assert server.reports == {}
        assert client.answer(ANSWER, token=code).status == "sent"


def test_a_survey_for_everybody_ignores_the_code_of_a_link(tmp_path: Path) -> None:
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    link = f"{server.link}&invite={new_code()}"
    with open_client(link, tmp_path / "s.db", transport=server, clock=server.clock) as client:
        assert client.answer(ANSWER).status == "sent"
    assert sent_token(server) is None
