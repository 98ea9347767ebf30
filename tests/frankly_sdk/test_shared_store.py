# SPDX-License-Identifier: Apache-2.0
"""Warning that the visitors of a web server are about to share one store."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, request
from frankly_sdk import Event, SharedStoreWarning
from frankly_sdk.testing import FakeServer, make_survey


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", "yes"]}))


def page(client: Any, **answer: Any) -> Any:
    app = Flask(__name__)
    app.testing = True

    @app.post("/")
    def ask() -> str:
        status: str = client.answer(dict(request.form), **answer).status
        return status

    return app.test_client()


def test_a_request_that_answers_for_everybody_warns_before_anything_is_drawn(
    server: FakeServer, tmp_path: Path
) -> None:
    events: list[Event] = []
    with server.open(tmp_path / "s.db", on_event=events.append) as client:
        http = page(client)
        with pytest.raises(SharedStoreWarning, match="one_person=True"):  # an error in these tests
            http.post("/", data={"smokes": "yes"})
        assert [event.name for event in events] == ["opened", "shared_store"]
        assert http.post("/", data={"smokes": "yes"}).text == "sent", (
            "each client must warn only once"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert client.budget().is_answered


@pytest.mark.parametrize("way_out", ["one_person", "respondent"])
def test_the_ways_out_are_silent(way_out: str, server: FakeServer, tmp_path: Path) -> None:
    one = way_out == "one_person"
    with server.open(tmp_path / "s.db", one_person=one) as client:
        http = page(client, respondent=None if one else "visitor 1")
        assert http.post("/", data={"smokes": "yes"}).text == "sent"


def test_outside_of_requests_there_is_no_warning(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db") as client, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.answer({"smokes": "yes"}).status == "sent"
