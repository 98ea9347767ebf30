# SPDX-License-Identifier: Apache-2.0
"""Arguments of the wrong type, which raise a typed error that names the argument, before any other effect."""

import math
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_sdk import Client, FranklyError, LinkError, Policy
from frankly_sdk.testing import FakeServer, make_survey, open_client

from tests.frankly_sdk.drivers import bodies
from tests.refusals import code_and_field, refusal

CANARY = "c4n4ry"
DAY_S = 24 * 3600
LONGEST_S = 400 * DAY_S  # a document is valid for at most 400 days (docs/protocol.md)
ANSWERS = {"smokes": CANARY}
NOT_SECONDS: list[Any] = [
    None, "x", "5", b"5", [], math.nan, math.inf, -math.inf, -5, -1e-9, True, 1j, 10**400, LONGEST_S + 1,
    math.nextafter(LONGEST_S, math.inf),
]  # fmt: skip
NOT_SWITCHES: list[Any] = [None, "false", "", 0, 1, []]
NOT_FUNCTIONS: list[Any] = [None, 5, "sleep", []]
NOT_OPTIONS: dict[str, list[Any]] = {
    "store": [None, 5, b"answers.db", [], True],
    "policy": ["3", 3, {"cap": "3"}, Policy],
    "keys": ["junk", 5, bytearray(b"{}"), Path("keys.json"), [b"{}"]],
    "enabled": NOT_SWITCHES,
    "debug": NOT_SWITCHES,
    "on_event": [5, "print", []],
    "spread_s": NOT_SECONDS[1:],
    "transport": ["https://host", 5, object(), dict],
    "clock": [time.time, "2026-01-01T00:00:00Z", 5, datetime],
    "randbits": NOT_FUNCTIONS,
    "sleep": NOT_FUNCTIONS[1:],
    "timer": NOT_FUNCTIONS,
    "wait": NOT_FUNCTIONS,
    "background": NOT_SWITCHES,
    "one_person": NOT_SWITCHES,
    "patience_s": NOT_SECONDS[1:],
    "ca_file": [5, b"ca.pem", [], True],
}
CASES = [(name, value) for name, values in NOT_OPTIONS.items() for value in values]


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", CANARY]}))


@pytest.mark.parametrize(
    ("name", "value"), CASES, ids=[f"{name}-{value!r:.20}" for name, value in CASES]
)
def test_an_option_of_another_kind_is_named(
    name: str, value: Any, server: FakeServer, tmp_path: Path
) -> None:
    options = {"store": tmp_path / "s.db"} | {name: value}
    error = refusal(InvalidInput, server.open, options.pop("store"), **options)
    assert (error.code, error.field) == ("field_type", name)
    if value is not datetime:  # the clock is first read once the store is open
        assert (server.requests, list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize("name", NOT_OPTIONS)
def test_wrong_options_raise_although_the_client_is_switched_off(
    name: str, server: FakeServer, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"store": tmp_path / "s.db", "enabled": False} | {
        name: NOT_OPTIONS[name][1]
    }
    error = refusal(InvalidInput, open_client, server.link, options.pop("store"), **options)
    assert error.field == name


class Elsewhere(PurePosixPath):
    """A path-like object of another class."""


GOOD: dict[str, list[Any]] = {
    "spread_s": [None, 0, 0.0, 1e-9, LONGEST_S, float(LONGEST_S)],
    "patience_s": [None, 0, 0.0, 1e-9, LONGEST_S, float(LONGEST_S)],
    "keys": [None],
    "policy": [None, Policy()],
    "on_event": [None, print],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in GOOD.items() for value in values]
)
def test_options_of_the_right_kind_are_accepted(
    name: str, value: Any, server: FakeServer, tmp_path: Path
) -> None:
    # `sleep` returns immediately and does not advance the clock, because after 400 days this survey
    # would be closed.
    with server.open(str(tmp_path / "s.db"), sleep=lambda _s: None, **{name: value}) as client:
        assert client.answer(ANSWERS, patience_s=LONGEST_S).status == "sent"
    with server.open(Elsewhere(tmp_path / "s.db")) as client:  # type: ignore[arg-type]
        assert client.flush(LONGEST_S) == []


NOT_ANSWERS: list[tuple[dict[str, Any], str, str | None]] = [
    *[({"patience_s": value}, "field_type", "patience_s") for value in NOT_SECONDS[1:]],
    *[({"respondent": value}, "field_type", "respondent") for value in (5, b"p", ["p"], 0, False)],
    *[
        ({"respondent": value}, "field_missing", "respondent")
        for value in ("", " ", "\t\n", "\u3000")
    ],
    *[
        ({"strata": value}, "unknown_choice", None)
        for value in list[Any]((5, [], "", 0, False, {"region": CANARY}))
    ],
    ({"token": 5}, "token_invalid", "token"),
]


@pytest.mark.parametrize(
    "case", range(len(NOT_ANSWERS)), ids=[f"{arguments!r:.30}" for arguments, *_ in NOT_ANSWERS]
)
def test_a_wrong_argument_of_an_answer_costs_nothing(
    case: int, server: FakeServer, tmp_path: Path
) -> None:
    arguments, code, field = NOT_ANSWERS[case]
    with server.open(tmp_path / "s.db") as client:
        error = refusal(FranklyError, client.answer, ANSWERS, **arguments)
        assert (error.code, error.field) == (code, field)
        assert CANARY not in str(error)
        assert bodies(server) == []
        assert client.flush() == []
        assert client.answer(ANSWERS).status == "sent", (
            "the install's own respondent must still be able to answer"
        )


def test_a_switched_off_client_names_a_wrong_argument_too(
    server: FakeServer, tmp_path: Path
) -> None:
    calls: list[tuple[str, Callable[[Client], object]]] = [
        ("patience_s", lambda client: client.answer(ANSWERS, patience_s="x")),  # type: ignore[arg-type]
        ("respondent", lambda client: client.answer(ANSWERS, respondent="")),
        ("timeout_s", lambda client: client.flush(math.nan)),
        ("rows", lambda client: client.randomise_many(5)),  # type: ignore[arg-type]
    ]
    with server.open(tmp_path / "s.db", enabled=False) as client:
        for field, call in calls:
            assert refusal(InvalidInput, call, client).field == field


@pytest.mark.parametrize("value", NOT_SECONDS)
def test_the_timeout_of_a_flush_is_in_seconds(
    value: Any, server: FakeServer, tmp_path: Path
) -> None:
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS, patience_s=0)
        assert code_and_field(InvalidInput, client.flush, value) == ("field_type", "timeout_s")
        assert bodies(server) == []


@pytest.mark.parametrize("name", ["allow_unpinned", "require_log"])
@pytest.mark.parametrize("value", NOT_SWITCHES)
def test_a_switch_of_the_policy_is_true_or_false(name: str, value: Any) -> None:
    assert code_and_field(InvalidInput, Policy, **{name: value}) == ("field_type", name)


ROW: tuple[str, Any, dict[str, str]] = ("p", ANSWERS, {})
NOT_ROWS: dict[str, tuple[Any, str, str]] = {
    "none": (None, "field_type", "rows"),
    "a number": (5, "field_type", "rows"),
    "a function": (lambda: [ROW], "field_type", "rows"),
    "numbers": ([5], "field_type", "rows[0]"),
    "a text": ("abc", "field_type", "rows[0]"),
    "a mapping": ({"p": ANSWERS}, "field_type", "rows[0]"),
    "one row, not in a list": (ROW, "field_type", "rows[0]"),
    "rows of two": ([ROW, ("q", ANSWERS)], "field_type", "rows[1]"),
    "rows of five": ([ROW, (*ROW, None, None)], "field_type", "rows[1]"),
    "an empty row": ([ROW, ()], "field_type", "rows[1]"),
    "a row that is a mapping": (
        [{"respondent": "p", "choices": ANSWERS, "strata": {}}],
        "field_type",
        "rows[0]",
    ),
    "no choices": ([("p", None, {})], "unknown_choice", "rows[0]"),
    "no strata": ([("p", ANSWERS, None)], "unknown_choice", "rows[0]"),
    "a blank key": ([ROW, (" ", ANSWERS, {})], "field_missing", "rows[1].respondent"),
    "an empty key": ([ROW, ("", ANSWERS, {})], "field_missing", "rows[1].respondent"),
    "a number as key": ([ROW, (7, ANSWERS, {})], "field_type", "rows[1].respondent"),
    "no key": ([ROW, (None, ANSWERS, {})], "field_type", "rows[1].respondent"),
}


@pytest.mark.parametrize("case", NOT_ROWS)
def test_rows_of_another_shape_are_named_and_nothing_is_sealed(
    case: str, server: FakeServer, tmp_path: Path
) -> None:
    bad_rows, code, field = NOT_ROWS[case]
    with server.open(tmp_path / "s.db") as client:
        with pytest.raises(FranklyError) as caught:
            list(client.randomise_many(bad_rows))
        assert (caught.value.code, caught.value.field) == (code, field)
        assert client.flush() == []
        assert client.answer(ANSWERS).status == "sent", (
            "the install's own respondent must still be able to answer"
        )


@pytest.mark.parametrize(
    "relay", [5, "https://[", "https://relay:port", b"https://relay.example", "relay.example"]
)
def test_an_invalid_relay_is_named_as_the_relay(
    relay: Any, server: FakeServer, tmp_path: Path
) -> None:
    error = refusal(LinkError, server.open, tmp_path / "s.db", relay=relay)
    assert error.field == "relay"
    assert "survey link" not in error.detail
    assert server.requests == []
