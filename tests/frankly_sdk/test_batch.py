# SPDX-License-Identifier: Apache-2.0
"""Many respondents on one device: each key has one ledger and one value, also for answers from files."""

import io
import json
import sqlite3
from argparse import Namespace
from contextlib import closing
from pathlib import Path

import pytest
from frankly_protocol.audit import Charge
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import encode_token
from frankly_sdk import AlreadyAnswered, BudgetExceeded, Client, Policy, StoreError, UnknownChoice
from frankly_sdk.cli import main
from frankly_sdk.store import Store
from frankly_sdk.testing import FakeClock, FakeServer, make_survey, status

from tests.frankly_sdk.drivers import driver  # noqa: F401
from tests.refusals import refusal

CANARY = "c4n4ry"


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", "yes"]}, strata={"region": ["north", "south"]}))


def rows(n: int, answer: str = "yes") -> list[tuple[str, dict[str, str], dict[str, str]]]:
    return [(f"person {i}", {"smokes": answer}, {"region": "north"}) for i in range(n)]


@pytest.mark.usefixtures("driver")
def test_a_key_that_answers_again_keeps_its_value(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frankly_sdk.batch.ROWS_PER_TRANSACTION", 20)
    monkeypatch.setattr("frankly_sdk.delivery.uniform", lambda: 0.5)  # in the order of the outbox
    n = 27
    with server.open(tmp_path / "s.db") as client:
        first = [row.report for row in client.randomise_many(rows(n))]
        again = [row.report for row in client.randomise_many(rows(n, "no"))]
        assert first == again
        assert len(set(first)) == n
        assert {receipt.status for receipt in client.flush()} == {"sent"}
        assert {row.status for row in client.randomise_many(rows(n))} == {"done"}
        with pytest.raises(AlreadyAnswered):
            client.answer({"smokes": "no"}, strata={"region": "north"}, respondent="person 3")
        assert (
            client.answer(
                {"smokes": "no"}, strata={"region": "north"}, respondent="a new person"
            ).status
            == "sent"
        )
    assert len(server.reports) == n + 1
    bodies = [request.body for request in server.requests if request.body is not None]
    assert bodies[:n] == sorted(row for row in first if row is not None), (
        "the order of answers must not be visible"
    )


@pytest.mark.parametrize("at_once", [1, 2, 3, 500])
@pytest.mark.usefixtures("driver")
def test_a_key_that_comes_twice_in_a_call_counts_once(
    at_once: int, server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any transaction size, the first row counts; rows of an earlier call are reported as
    sealed or done."""
    monkeypatch.setattr("frankly_sdk.batch.ROWS_PER_TRANSACTION", at_once)
    a, b, c, d = rows(4)
    repeated_rows = [a, b, ("person 0", {"smokes": "no"}, {"region": "south"}), b, c, a]
    with server.open(tmp_path / "s.db") as client:
        sealed_rows = list(client.randomise_many(repeated_rows))
        assert [row.status for row in sealed_rows] == [
            "sealed",
            "sealed",
            "already",
            "already",
            "sealed",
            "already",
        ]
        assert [row.respondent for row in sealed_rows] == [row[0] for row in repeated_rows]
        assert [row.report is None for row in sealed_rows] == [
            row.status == "already" for row in sealed_rows
        ]
        later_rows = list(client.randomise_many([c, a, c]))
        assert [row.status for row in later_rows] == ["sealed", "sealed", "already"]
        assert [row.report for row in later_rows] == [
            sealed_rows[4].report,
            sealed_rows[0].report,
            None,
        ]
        assert {receipt.status for receipt in client.flush()} == {"sent"}
        assert [row.status for row in client.randomise_many([a, a, d])] == [
            "done",
            "already",
            "sealed",
        ]
        client.flush()
    assert len(server.reports) == 4
    assert [report.strata for report in server.reports.values()] == [{"region": "north"}] * 4


@pytest.mark.usefixtures("driver")
def test_a_key_over_the_budget_counts_once_too(server: FakeServer, tmp_path: Path) -> None:
    for _ in range(2):
        another_survey = FakeServer(
            make_survey({"smokes": ["no", "yes"]}), authority=server.authority
        )
        with another_survey.open(tmp_path / "s.db", policy=Policy(cap="1.5")) as client:
            statuses = [
                row.status for row in client.randomise_many([("a", {"smokes": "no"}, {})] * 2)
            ]
    assert statuses == ["over_budget", "already"]


def test_a_wrong_row_of_a_repeated_key_is_refused(server: FakeServer, tmp_path: Path) -> None:
    bad_rows = [*rows(1), ("person 0", {"smokes": CANARY}, {"region": "north"})]
    with server.open(tmp_path / "s.db") as client:
        error = refusal(UnknownChoice, list, client.randomise_many(bad_rows))
        assert error.field == "rows[1].smokes"
        assert client.flush() == []


@pytest.mark.usefixtures("driver")
def test_each_key_has_its_own_ledger(server: FakeServer, tmp_path: Path) -> None:
    policy = Policy(cap="2")
    for i in range(3):
        another_survey = FakeServer(
            make_survey({"smokes": ["no", "yes"]}), authority=server.authority
        )
        with another_survey.open(tmp_path / "s.db", policy=policy) as client:
            statuses = [
                row.status
                for row in client.randomise_many(
                    [(key, {"smokes": "no"}, {}) for key in ("a", "b")]
                )
            ]
            assert statuses == ["sealed" if i < 2 else "over_budget"] * 2
            if i == 2:
                with pytest.raises(BudgetExceeded):
                    client.answer({"smokes": "no"}, respondent="a")
                assert client.answer({"smokes": "no"}, respondent="c").status == "sent"


@pytest.mark.usefixtures("driver")
def test_a_wrong_row_stops_its_batch_before_anything_is_drawn(
    server: FakeServer, tmp_path: Path
) -> None:
    with server.open(tmp_path / "s.db") as client:
        with pytest.raises(UnknownChoice) as caught:
            list(client.randomise_many([*rows(3), ("x", {"smokes": CANARY}, {"region": "north"})]))
        assert caught.value.field == "rows[3].smokes"
        assert CANARY not in str(caught.value)
        with pytest.raises(InvalidInput):
            list(client.randomise_many([("", {"smokes": "no"}, {"region": "north"})]))
        assert client.flush() == []


def invite(i: int) -> str:
    return encode_token(bytes([i]) * 32)


@pytest.fixture
def invited(server: FakeServer) -> FakeServer:
    """The same survey, for respondents with a token."""
    rule = TokenRule("invite")
    questions, strata = {"smokes": ["no", "yes"]}, {"region": ["north", "south"]}
    return FakeServer(make_survey(questions, strata=strata, token=rule), authority=server.authority)


@pytest.mark.usefixtures("driver")
def test_a_row_may_bring_its_token(invited: FakeServer, tmp_path: Path) -> None:
    with invited.open(tmp_path / "s.db") as client:
        people = [(*row, invite(i)) for i, row in enumerate(rows(5))]
        assert [row.status for row in client.randomise_many(people)] == ["sealed"] * 5
        assert [row.status for row in client.randomise_many(people)] == ["sealed"] * 5
        assert {receipt.status for receipt in client.flush()} == {"sent"}
        assert {report.token for report in invited.reports.values()} == {
            invite(i) for i in range(5)
        }
        again = client.answer(
            {"smokes": "no"}, strata={"region": "north"}, respondent="late", token=invite(0)
        )
        assert (again.status, again.code) == ("refused", "token_spent")


ROW = ("x", {"smokes": "yes"}, {"region": "north"})
BAD_ROWS: dict[str, tuple[bool, tuple[object, ...], str, str]] = {
    "no token": (True, ROW, "token_invalid", "rows[2].token"),
    "none": (True, (*ROW, None), "token_invalid", "rows[2].token"),
    "empty": (True, (*ROW, ""), "token_invalid", "rows[2].token"),
    "too short": (True, (*ROW, encode_token(bytes(31))), "token_invalid", "rows[2].token"),
    "not a text": (True, (*ROW, 7), "token_invalid", "rows[2].token"),
    "not ascii": (True, (*ROW, "é" * 43), "token_invalid", "rows[2].token"),
    "of no use": (False, (*ROW, invite(1)), "token_invalid", "rows[2].token"),
    "not a choice": (
        True,
        ("x", {"smokes": CANARY}, {"region": "north"}, invite(9)),
        "unknown_choice",
        "rows[2].smokes",
    ),
    "no strata": (False, ROW[:2], "field_type", "rows[2]"),
    "too many members": (True, (*ROW, invite(9), 1), "field_type", "rows[2]"),
    "not a tuple": (False, "xyz", "field_type", "rows[2]"),  # type: ignore[dict-item]
    "no key": (True, ("", *ROW[1:], invite(9)), "field_missing", "rows[2].respondent"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_named_and_nothing_of_its_batch_is_sealed(
    case: str, server: FakeServer, invited: FakeServer, tmp_path: Path
) -> None:
    with_tokens, bad_row, code, field = BAD_ROWS[case]
    survey_server = invited if with_tokens else server
    valid_rows = [(*row, invite(i)) if with_tokens else row for i, row in enumerate(rows(2))]
    with survey_server.open(tmp_path / "s.db") as client:
        with pytest.raises(FranklyError) as caught:
            list(client.randomise_many([*valid_rows, bad_row]))  # type: ignore[list-item]
        assert (caught.value.code, caught.value.field) == (code, field)
        assert CANARY not in str(caught.value)
        assert client.flush() == []


def test_a_token_that_is_not_text_is_a_typed_error(invited: FakeServer, tmp_path: Path) -> None:
    with invited.open(tmp_path / "s.db") as client:
        for token in (7, b"x", ["x"]):
            with pytest.raises(InvalidInput) as caught:
                client.answer({"smokes": "no"}, strata={"region": "north"}, token=token)  # type: ignore[arg-type]
            assert (caught.value.code, caught.value.field) == ("token_invalid", "token")
        assert client.flush() == []


def test_keys_and_answers_are_never_written(server: FakeServer, tmp_path: Path) -> None:
    document = make_survey({"smokes": ["no", CANARY]})
    canary_server = FakeServer(document, authority=server.authority)
    with canary_server.open(tmp_path / "s.db") as client:
        list(client.randomise_many([(f"{CANARY} {i}", {"smokes": CANARY}, {}) for i in range(9)]))
        stored_bytes = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert CANARY.encode() not in stored_bytes
    names = {Store(tmp_path / name).respondent_name("a") for name in ("s.db", "t.db")}
    assert len(names) == 2, "another device must give the same respondent another name"


def test_a_store_of_version_1_keeps_its_data(server: FakeServer, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db")) as database, database:
        database.executescript(
            """CREATE TABLE keys (origin TEXT PRIMARY KEY, envelope BLOB NOT NULL);
            CREATE TABLE surveys (survey TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL,
                                  envelope BLOB NOT NULL);
            CREATE TABLE evidence (digest TEXT PRIMARY KEY, envelope BLOB NOT NULL);
            CREATE TABLE answers (survey TEXT PRIMARY KEY, digest TEXT NOT NULL, collect_url TEXT NOT NULL,
                report_id TEXT NOT NULL, body BLOB, state TEXT NOT NULL, code TEXT NOT NULL, level TEXT NOT NULL,
                ceiling TEXT);
            INSERT INTO answers VALUES ('aa', 'sha256:1', 'https://host', 'id', x'20', 'sealed', '', '3/1', NULL);
            PRAGMA user_version = 1"""
        )
    store = Store(tmp_path / "s.db")
    (queued,) = store.outbox()
    assert (queued.survey, queued.respondent, queued.body) == ("aa", "", b" ")
    assert store.spent() == [Charge(None)]
    store.close()


def run(
    server: FakeServer,
    folder: Path,
    *arguments: str,
    table: str | None = None,
    name: str = "in.csv",
) -> int:
    if table is not None:
        (folder / name).write_text(table, encoding="utf-8", newline="")

    def opener(chosen: Namespace) -> Client:
        return server.open(chosen.store, policy=Policy(chosen.cap), link=chosen.link)

    return main([*arguments, "--link", server.link, "--store", str(folder / "s.db")], opener)


def randomise(server: FakeServer, folder: Path, table: str) -> int:
    files = str(folder / "in.csv"), str(folder / "o")
    return run(server, folder, "randomise", *files, table=table)


TABLE = "respondent,smokes,region\n" + "".join(f"p{i},yes,north\n" for i in range(12))


def test_a_file_is_randomised_and_flushed(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = str(tmp_path / "in.csv"), str(tmp_path / "out.jsonl")
    assert run(server, tmp_path, "randomise", *files, table=TABLE) == 0
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == 12
    assert len({len(line) for line in lines}) == 1
    assert lines == sorted(lines), "ids must be random, and so must their order"
    assert {tuple(json.loads(line)) for line in lines} == {
        ("v", "doc", "id", "y", "strata", "token")
    }
    # The second run is also offline: the file is kept unless forced, and then contains the same
    # bytes.
    server.network.online = False
    assert run(server, tmp_path, "randomise", *files) == 3
    assert run(server, tmp_path, "randomise", *files, "--force") == 0
    assert (tmp_path / "out.jsonl").read_bytes().splitlines() == lines
    server.network.online = True
    assert run(server, tmp_path, "flush") == 0
    assert len(server.reports) == 12
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.csv",
        "out.jsonl",
        "s.db",
        "s.db-journal",
        "s.db-sending",
    ]
    said = "sealed 12, acknowledged or refused before 0, over the budget 0\n"
    assert capsys.readouterr().err.count(said) == 2


def test_every_row_of_a_file_is_counted(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = str(tmp_path / "in.csv"), str(tmp_path / "out.jsonl")
    rows = [f"p{i},yes,north\n" for i in range(3)]
    head = "respondent,smokes,region\n"
    assert run(server, tmp_path, "randomise", *files, table=head + "".join(rows)) == 0
    assert run(server, tmp_path, "flush") == 0
    capsys.readouterr()
    rows.append("p3,yes,north\n")
    assert run(server, tmp_path, "randomise", *files, "--force", table=head + "".join(rows)) == 0
    said = "sealed 1, acknowledged or refused before 3, over the budget 0\n"
    assert said in capsys.readouterr().err


def test_a_flush_reports_an_unreachable_server(server: FakeServer, tmp_path: Path) -> None:
    randomise(server, tmp_path, TABLE)
    server.network.then(*[status(503)] * 99)
    assert run(server, tmp_path, "flush", "--seconds", "1") == 5


def test_standard_input_is_read_and_the_survey_explained(
    server: FakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Piped:
        buffer = io.BytesIO(b"\xef\xbb\xbf" + TABLE.replace("\n", "\r\n").encode())

    monkeypatch.setattr("sys.stdin", Piped)
    assert run(server, tmp_path, "randomise", "-", str(tmp_path / "o")) == 0
    assert run(server, tmp_path, "explain") == 0
    assert "changes by at most ×2.72" not in (output := capsys.readouterr().out)
    assert "change by at most ×2.72" in output


BAD_TABLES = {
    "no header": ("", "line 1"),
    "unknown column": ("respondent,smokes,region,shoe\np,yes,north,9\n", "line 1"),
    "a column twice": ("respondent,smokes,region,smokes\np,yes,north,no\n", "line 1"),
    "no key": ("respondent,smokes,region\n,yes,north\n", "line 2, column respondent"),
    "a blank key": ("respondent,smokes,region\n  ,yes,north\n", "line 2, column respondent"),
    "a key twice": (
        "respondent,smokes,region\np,yes,north\np,no,north\n",
        "line 3, column respondent",
    ),
    "empty row": ("respondent,smokes,region\np,yes,north\n\nq,yes,north\n", "line 3"),
    "too few cells": ("respondent,smokes,region\np,yes\n", "line 2"),
    "not a choice": (
        f"respondent,smokes,region\np,yes,north\nq,{CANARY},north\n",
        "line 3, column smokes",
    ),
    "not a region": (f"respondent,smokes,region\np,yes,{CANARY}\n", "line 2, column region"),
    "a line break in a cell": ('respondent,smokes,region\np,"y\nes",north\n', "line 2"),
    "a stray quote": ('respondent,smokes,region\np,"yes"x,north\n', "line 2"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_name_the_line_and_seal_nothing(
    case: str, server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, where = BAD_TABLES[case]
    assert randomise(server, tmp_path, table) == 3
    message = capsys.readouterr().err
    assert f"{where}: " in message
    assert CANARY not in message
    assert not (tmp_path / "o").exists()
    assert Store(tmp_path / "s.db").outbox() == []


INVITED = "respondent,smokes,region,token\n" + "".join(
    f"p{i},yes,north,{invite(i)}\n" for i in range(4)
)
BAD_INVITED = {
    "no column": (TABLE, "line 1: expected the columns region, respondent, smokes, token"),
    "no token": (INVITED + "q,yes,north,\n", "line 6, column token"),
    "a false token": (INVITED + f"q,yes,north,{invite(9)[:-1]}\n", "line 6, column token"),
    "a token twice": (INVITED + f"q,yes,north,{invite(2)}\n", "line 6, column token"),
}


@pytest.mark.parametrize("case", BAD_INVITED)
def test_bad_tables_of_invited_people_name_the_line(
    case: str, invited: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, where = BAD_INVITED[case]
    assert randomise(invited, tmp_path, table) == 3
    assert where in (message := capsys.readouterr().err)
    assert invite(9)[:-1] not in message
    assert Store(tmp_path / "s.db").outbox() == []


@pytest.mark.parametrize("column", ["token", "letter no."])
def test_a_file_may_hold_tokens(invited: FakeServer, tmp_path: Path, column: str) -> None:
    files, table = (str(tmp_path / "in.csv"), str(tmp_path / "o")), INVITED.replace("token", column)
    named = [] if column == "token" else ["--token", column]
    assert run(invited, tmp_path, "randomise", *files, *named, table=table) == 0
    assert {
        json.loads(line)["token"] for line in (tmp_path / "o").read_bytes().splitlines()
    } == set(map(invite, range(4)))
    assert run(invited, tmp_path, "flush") == 0
    assert len(invited.reports) == 4


def test_a_question_may_have_the_name_of_a_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer(make_survey({"token": ["no", "yes"]}, token=TokenRule("invite")))
    files, table = (
        (str(tmp_path / "in.csv"), str(tmp_path / "o")),
        f"respondent,token,code\np,yes,{invite(1)}\n",
    )
    assert run(server, tmp_path, "randomise", *files, table=table) == 3
    assert "--token" in capsys.readouterr().err
    assert run(server, tmp_path, "randomise", *files, "--token", "code", table=table) == 0


EXITS = [
    (["--cap", "0.5"], 4, "policy"),
    (["--cap", "much"], 3, "cap"),
    (["--keys", "/nowhere/keys"], 3, "/nowhere/keys"),
]


@pytest.mark.parametrize(("options", "code", "_what"), EXITS)
def test_exit_codes(
    options: list[str], code: int, _what: str, server: FakeServer, tmp_path: Path
) -> None:
    if "--keys" in options:
        arguments = ["flush", "--link", server.link, "--store", str(tmp_path / "s.db"), *options]
        assert main(arguments) == code  # the real opener reads the file first
        return
    assert run(server, tmp_path, "flush", *options) == code


def test_no_network_and_no_store_have_separate_codes(server: FakeServer, tmp_path: Path) -> None:
    server.network.online = False
    assert run(server, tmp_path, "flush") == 5
    (tmp_path / "s.db").unlink()
    (tmp_path / "s.db").mkdir()
    assert run(server, tmp_path, "flush") == 6
    assert refusal(SystemExit, main, ["randomise"]).code == 2


def test_a_full_disk_leaves_no_partial_file(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_fd: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr("frankly_sdk.cli.os.fsync", full)
    assert randomise(server, tmp_path, TABLE) == 3
    assert [
        path.name for path in tmp_path.iterdir() if path.name not in ("s.db", "s.db-journal")
    ] == ["in.csv"]
    assert len(Store(tmp_path / "s.db").outbox()) == 12


def test_without_randomness_no_respondent_is_named(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_bits: int) -> int:
        raise OSError

    with server.open(tmp_path / "s.db") as client, monkeypatch.context() as patched:
        patched.setattr("frankly_sdk.store.secrets.randbits", broken)
        with pytest.raises(FranklyError) as caught:
            client.answer({"smokes": "no"}, strata={"region": "north"}, respondent="p")
    assert caught.value.code == "randomness"
    assert not isinstance(caught.value, StoreError)
    assert FakeClock().naps == []
