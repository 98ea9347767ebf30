# SPDX-License-Identifier: Apache-2.0
"""Canary answers on every error path, which must never be in the store, its journal, logs or exceptions."""

import gc
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from frankly_sdk import AlreadyAnswered, Answer, FranklyError, NetworkError, Policy
from frankly_sdk.cli import main
from frankly_sdk.store import Store
from frankly_sdk.testing import (
    FakeServer,
    drop,
    log_in_page,
    lose_receipt,
    make_survey,
    redirect,
    status,
)

CANARY = "c4n4ry"
DOCUMENT = make_survey(
    {"smokes": ["no", CANARY], "walks": [CANARY, "b", "c"]}, strata={"region": ["north", "south"]}
)
ANSWERS = {"smokes": CANARY, "walks": CANARY}
REGION = {"region": "north"}
Path_ = Callable[[FakeServer, Path], object]


def _sends(*steps: object) -> Path_:
    def path(server: FakeServer, store: Path) -> object:
        server.network.then(*steps)  # type: ignore[arg-type]
        with server.open(store) as client:
            return client.answer(ANSWERS, strata=REGION, patience_s=5)

    return path


def _with(**options: object) -> Path_:
    def path(server: FakeServer, store: Path) -> object:
        with server.open(store, **options) as client:
            return client.answer(ANSWERS, strata=REGION)

    return path


def _answers(answers: object, strata: object = REGION) -> Path_:
    def path(server: FakeServer, store: Path) -> object:
        with server.open(store) as client:
            return client.answer(answers, strata=strata)  # type: ignore[arg-type]

    return path


def _no_bits(_bits: int) -> int:
    raise OSError(CANARY)


def _late(server: FakeServer, store: Path) -> None:
    with server.open(store) as client:
        server.clock.advance(timedelta(days=40))
        client.answer(ANSWERS, strata=REGION)


def _twice(server: FakeServer, store: Path) -> None:
    for _ in range(2):
        with server.open(store, debug=True) as client:
            client.answer(ANSWERS, strata=REGION)


def _closed(server: FakeServer, store: Path) -> None:
    client = server.open(store)
    client.close()
    client.answer(ANSWERS, strata=REGION)


def _batch(server: FakeServer, store: Path) -> None:
    with server.open(store, policy=Policy(cap="2")) as client:
        rows = [(str(i), ANSWERS, REGION) for i in range(3)]
        list(client.randomise_many([*rows, ("x", {**ANSWERS, "smokes": f"{CANARY}!"}, REGION)]))


def _table(server: FakeServer, store: Path) -> None:
    table = store.parent.parent / f"{store.parent.name}.csv"
    table.write_text(
        f"respondent,smokes,walks,region\na,{CANARY},{CANARY},north\nb,{CANARY}!,b,north\n"
    )
    arguments = [
        "randomise",
        str(table),
        str(store.parent / "out"),
        "--link",
        server.link,
        "--store",
        str(store),
    ]
    assert main(arguments, lambda chosen: server.open(chosen.store)) == 3
    table.unlink()


def _handler(server: FakeServer, store: Path) -> None:
    def fails(_event: object) -> None:
        raise ValueError("app")

    with server.open(store, on_event=fails, debug=True) as client:
        client.answer(Answer(ANSWERS), strata=REGION)


PATHS: dict[str, Path_] = {
    "sent": _sends(),
    "dropped": _sends(*[drop()] * 99),
    "receipt lost": _sends(lose_receipt()),
    "busy": _sends(status(503, "unavailable", 1)),
    "asked to wait a day": _sends(status(429, "too_many", 10**9)),
    "closed": _sends(status(410, "closed")),
    "refused": _sends(status(422, "symbol_unknown")),
    "conflict": _sends(status(409, "id_conflict")),
    "gateway": _sends(status(404), log_in_page(), redirect()),
    "no randomness": _with(randbits=_no_bits),
    "over the cap": _with(policy=Policy(cap="1")),
    "not a choice": _answers({"smokes": f"{CANARY}!", "walks": CANARY}),
    "unknown question": _answers({**ANSWERS, CANARY: CANARY}),
    "missing": _answers({"smokes": CANARY}),
    "wrong type": _answers({"smokes": [CANARY], "walks": 1}),
    "no mapping": _answers(CANARY),
    "wrong region": _answers(ANSWERS, {"region": CANARY}),
    "too late": _late,
    "twice": _twice,
    "closed store": _closed,
    "batch": _batch,
    "table": _table,
    "failing handler": _handler,
}


@pytest.mark.parametrize("case", PATHS)
def test_no_byte_of_an_answer_anywhere(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    folder = tmp_path / "device"
    folder.mkdir()
    server = FakeServer(DOCUMENT)
    error_texts = ""
    try:
        PATHS[case](server, folder / "s.db")
    except FranklyError as error:
        error_texts = "".join(_texts(error))
    assert CANARY not in _but_for_offers(error_texts)
    stored_bytes = b"".join(path.read_bytes() for path in folder.iterdir())
    sent = b"".join(request.body or b"" for request in server.requests)
    captured = capfd.readouterr()
    assert CANARY.encode() not in stored_bytes + sent
    assert CANARY not in _but_for_offers(caplog.text + captured.out + captured.err)
    assert [name.name for name in tmp_path.iterdir()] == ["device"]


def _but_for_offers(text: str) -> str:
    """Remove the public document's lists of choices; a respondent's answers remain."""
    for choices in (("no", CANARY), (CANARY, "b", "c")):
        text = text.replace(f"valid: {', '.join(choices)}", "").replace(f"'valid': {choices}", "")
    return text


def _texts(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield "".join(traceback.format_exception_only(error))
        yield repr(vars(error))
        error = error.__cause__ or error.__context__


def test_every_file_is_scanned_while_it_is_written(tmp_path: Path) -> None:
    """The journal exists only briefly, so the test reads files during requests and at the next start."""
    folder = tmp_path / "device"
    folder.mkdir()
    looks: list[bytes] = []
    server = FakeServer(DOCUMENT)

    def look(_server: object) -> object:
        looks.append(b"".join(path.read_bytes() for path in folder.iterdir()))
        raise NetworkError("down")

    server.network.then(*[look] * 9)  # type: ignore[arg-type]
    with server.open(folder / "s.db") as client:
        client.answer(ANSWERS, strata=REGION, patience_s=1)
    with server.open(folder / "s.db") as client, suppress(AlreadyAnswered):
        client.answer({"smokes": "no", "walks": "b"}, strata=REGION, patience_s=1)
    assert len(looks) >= 3
    assert not any(CANARY.encode() in scan for scan in looks)
    assert all(b'"y":' in scan for scan in looks), "each scan must find the sealed report"


def test_after_the_acknowledgement_the_symbols_are_overwritten(tmp_path: Path) -> None:
    server = FakeServer(DOCUMENT)
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS, strata=REGION)
    (report_id,) = server.reports
    stored_bytes = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert report_id.encode() not in stored_bytes
    assert b'"y":' not in stored_bytes


def test_nothing_of_the_answer_outlives_the_call_in_the_client(tmp_path: Path) -> None:
    """After the call, no Answer or Store object refers to the true answer."""
    server = FakeServer(make_survey({"q": ["a", "b"]}))
    truth = {"q": "".join(["a"])}
    earlier_answers = [
        thing for thing in gc.get_objects() if isinstance(thing, Answer)
    ]  # clients of earlier tests
    with server.open(tmp_path / "s.db") as client:
        client.answer(truth)
        gc.collect()
        holders = [
            thing
            for thing in gc.get_referrers(truth)
            if not isinstance(thing, type(truth)) and thing is not gc
        ]
        assert not any(isinstance(thing, (Answer, Store)) for thing in holders)
        answers = [thing for thing in gc.get_objects() if isinstance(thing, Answer)]
        assert all(any(thing is earlier for earlier in earlier_answers) for thing in answers)
