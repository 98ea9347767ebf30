# SPDX-License-Identifier: Apache-2.0
"""Plans: what to ask is drawn once, stored before it is known, and is what the report is about."""

import copy
import gc
import pickle
import secrets
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from frankly_protocol.asking import Asking
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import ClockError, RandomnessError
from frankly_protocol.questions import Question
from frankly_protocol.tokens import TokenRule
from frankly_sdk import (
    AlreadyAnswered,
    BudgetExceeded,
    Client,
    Disabled,
    Event,
    InvalidInput,
    Policy,
    StoreError,
    SurveyClosed,
    UnknownChoice,
)
from frankly_sdk._database import Database
from frankly_sdk._planning import Planning
from frankly_sdk._sealing import Sealing
from frankly_sdk.answer import Answer
from frankly_sdk.cli import main
from frankly_sdk.testing import Authority, FakeClock, FakeServer, drop, make_survey

from tests.frankly_protocol.asked import AGE, QUESTIONS, SIGNS, WORK, form
from tests.frankly_sdk.drivers import driver  # noqa: F401

CLOCK = FakeClock()
AUTHORITY = Authority(CLOCK)
TEN = {f"q{i}": ["no", "yes"] for i in range(10)}
DOCUMENT = make_survey({"always": ["no", "yes"]}, drawn=TEN, clock=CLOCK)
EVERYTHING = dict.fromkeys(["always", *TEN], "no")


def fresh(document: SurveyDocument = DOCUMENT) -> FakeServer:
    return FakeServer(document, FakeClock(), AUTHORITY)


def begun(first: int) -> Callable[[int], int]:
    """Return a source of random bits that begins with a given value."""
    values = iter([first])
    return lambda bits: next(values, None) or secrets.randbits(bits)


def rows_of(store: Path) -> list[tuple[Any, ...]]:
    """Return the stored plans, read without the SDK."""
    with closing(sqlite3.connect(store)) as db, db:
        return db.execute("SELECT * FROM plans").fetchall()


def shown_by(symbol: list[int], document: SurveyDocument = DOCUMENT) -> set[str]:
    """Return the questions that a form's symbol is about."""
    block = next(one for one in document.blocks if one.asks_drawn)
    mechanism: Any = block.mechanism
    return {block.questions[i].id for part in symbol[1::2] for i in mechanism.parts[part]}


@pytest.mark.usefixtures("driver")
def test_the_plan_shown_is_that_of_the_report_whoever_asks_again(tmp_path: Path) -> None:
    for i in range(12):
        server, store = fresh(), tmp_path / f"{i}.db"
        with server.open(store, spread_s=0) as first:
            plan = first.plan()
            assert first.plan().questions == plan.questions
        requests = len(server.requests)
        with server.open(store, spread_s=0) as again:
            assert again.plan().questions == plan.questions
            assert again.answer(dict.fromkeys(plan.questions, "yes")).status == "sent"
        assert plan.questions[0] == "always"
        assert (plan.asked, plan.of) == (2, 11)
        assert shown_by(server.symbols(1)[0]) == set(plan.questions[1:])
        assert rows_of(store) == []
        # A plan causes no request, and an abandoned one leaves no trace outside the store.
        assert [one.body for one in server.requests[:requests] if one.body] == []


@pytest.mark.usefixtures("driver")
def test_each_question_is_drawn_as_often_as_the_mechanism_says(tmp_path: Path) -> None:
    """Every value of the first draw that separates two components, in place of random bits."""
    (block,) = (one for one in DOCUMENT.blocks if one.asks_drawn)
    mechanism: Any = block.mechanism
    cumulative = [sum(c.chance for c in mechanism.components[:i]) for i in range(11)]
    for i in range(10):
        for u in (cumulative[i], cumulative[i + 1] - 1):
            with fresh().open(tmp_path / f"{u}.db", randbits=lambda _bits, u=u: u) as client:
                assert client.plan().questions == ("always", f"q{i}")


@pytest.mark.usefixtures("driver")
def test_plans_take_their_bits_first_and_answers_the_rest(tmp_path: Path) -> None:
    """With a plan or without, a device draws the same report from the same bits."""
    values, sent = [secrets.randbits(128) for _ in range(40)], list[Any]()
    for is_planned in (True, False):
        server, left = fresh(), iter(values)
        source = lambda bits, left=left: next(left) >> 128 - bits  # noqa: E731
        with server.open(tmp_path / f"{is_planned}.db", randbits=source) as client:
            if is_planned:
                client.plan()
            client.answer(EVERYTHING)
        sent += server.reports.values()
    assert sent[0] == sent[1]


@pytest.mark.usefixtures("driver")
def test_answers_that_are_not_needed_are_checked_and_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(8):
        with fresh().open(tmp_path / f"{i}.db") as client:
            plan = client.plan()
            other = next(name for name in TEN if name not in plan.questions)
            with pytest.raises(UnknownChoice) as bad:
                client.answer(EVERYTHING | {other: "canary"})
            assert (bad.value.field, "canary" in str(bad.value)) == (other, False)
            with pytest.raises(UnknownChoice) as unknown:
                client.answer(EVERYTHING | {"q99": "no"})
            assert unknown.value.field is None
            with pytest.raises(UnknownChoice, match="no answer") as missing:
                client.answer({name: "no" for name in EVERYTHING if name != plan.questions[1]})
            assert missing.value.field == plan.questions[1]
            seen = watched(client, monkeypatch)
            assert client.answer(EVERYTHING).status == "sent"
            assert seen == [set(plan.questions)]


def watched(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Return a list of the questions whose answers reach each sealing."""
    sealing, seen = client._core.parts.sealing, list[set[str]]()  # type: ignore[union-attr]
    seal = type(sealing).one

    def one(self: Any, row: Any) -> Any:
        seen.append(set(row.truth.revealed()))
        return seal(self, row)

    monkeypatch.setattr(type(sealing), "one", one)
    return seen


@pytest.mark.usefixtures("driver")
def test_a_draw_is_never_repeated_until_it_fits_the_answers(tmp_path: Path) -> None:
    """An app that asks what it likes and tries again finds the first plan every time."""
    for i in range(12):
        store, server = tmp_path / f"{i}.db", fresh()
        wanted = {"always": "no", "q0": "no"}
        outcomes = set()
        for _ in range(3):
            with server.open(store) as client:
                try:
                    outcomes.add(client.answer(wanted).status)
                except AlreadyAnswered:
                    outcomes.add("sent")
                except UnknownChoice as missing:
                    outcomes.add(str(missing.field))
        assert len(outcomes) == 1
        if outcomes != {"sent"}:
            ((*_, stored),) = rows_of(store)
            assert outcomes == {f"q{stored.split('[')[-1].rstrip(']')}"}


@pytest.mark.usefixtures("driver")
def test_a_batch_plans_for_each_respondent_and_seals_all_rows_or_none(tmp_path: Path) -> None:
    server = fresh()
    with server.open(tmp_path / "s.db") as client:
        plans = {key: client.plan(key).questions for key in "abc"}
        assert len(rows_of(tmp_path / "s.db")) == 3
        rows: list[Any] = [(key, dict.fromkeys(asked, "no"), {}) for key, asked in plans.items()]
        whole: list[Any] = [("d", EVERYTHING, {})]
        lacking: Any = ("e", {"always": "no"}, {})
        with pytest.raises(UnknownChoice) as missing:
            list(client.randomise_many([*rows, *whole, lacking]))
        assert str(missing.value.field).startswith("rows[4].q")
        # The row that lacked answers keeps its plan, and no other was changed.
        planned = client.plan("e").questions
        assert missing.value.field == f"rows[4].{planned[1]}"
        assert {key: client.plan(key).questions for key in "abc"} == plans
        rows.append(("e", dict.fromkeys(planned, "no"), {}))
        assert [one.status for one in client.randomise_many([*rows, *whole])] == ["sealed"] * 5
        assert rows_of(tmp_path / "s.db") == []
        assert {one.status for one in client.flush(60)} == {"sent"}
    expected = sorted([asked[1] for asked in plans.values()] + [planned[1]])
    shown = [name for symbol in server.symbols(1) for name in shown_by(symbol)]
    for name in expected:
        shown.remove(name)
    assert len(shown) == 1  # of the row without a plan


def changed(document: SurveyDocument, block: Block) -> SurveyDocument:
    """Return the next version of a document with another form."""
    blocks = tuple(block if one.id == block.id else one for one in document.blocks)
    return replace(document, version=2, prev=document.digest, blocks=blocks)


def reworded(block: Block) -> Block:
    texts = tuple(replace(one, text={"en": f"{one.id}, please?"}) for one in block.questions)
    return replace(block, questions=texts)


def with_a_role(block: Block) -> Block:
    *others, last = block.questions
    choices = (last.choices[0], replace(last.choices[1], role="no_answer"))
    return replace(block, questions=(*others, replace(last, choices=choices)))


def stronger(block: Block) -> Block:
    other = make_survey({}, "2", drawn=TEN).blocks[0]
    return replace(other, id=block.id)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("change", "is_kept"), [(reworded, True), (with_a_role, False), (stronger, False)]
)
def test_a_new_version_keeps_the_plan_if_the_form_is_the_same(
    change: Callable[[Block], Block], is_kept: bool, tmp_path: Path
) -> None:
    (block,) = (one for one in DOCUMENT.blocks if one.asks_drawn)
    store = tmp_path / "s.db"
    with fresh().open(store, randbits=lambda _bits: 0) as client:
        assert client.plan().questions == ("always", "q0")
    newer = fresh(changed(DOCUMENT, change(block)))
    with newer.open(store, randbits=lambda bits: (1 << bits) - 1) as client:
        asked = ("always", "q0") if is_kept else ("always", "q9")
        assert client.plan().questions == asked
    # The plan of the earlier form stays too, until the survey is answered.
    assert len(rows_of(store)) == (1 if is_kept else 2)
    with newer.open(store) as client:
        assert client.answer(dict.fromkeys(asked, "no")).status == "sent"
    assert shown_by(newer.symbols(1)[0]) == {asked[1]}
    assert rows_of(store) == []


@pytest.mark.usefixtures("driver")
def test_two_versions_that_are_open_at_once_keep_their_plans(tmp_path: Path) -> None:
    (block,) = (one for one in DOCUMENT.blocks if one.asks_drawn)
    store, server = tmp_path / "s.db", fresh()
    newer = fresh(changed(DOCUMENT, with_a_role(block)))
    with server.open(store) as first, newer.open(store) as second:
        plans = {(first.plan().questions, second.plan().questions) for _ in range(5)}
        ((asked, _),) = plans
        assert first.answer(dict.fromkeys(asked, "no")).status == "sent"
        with pytest.raises(AlreadyAnswered):
            second.plan()
    assert shown_by(server.symbols(1)[0]) == set(asked[1:])


EDITS: dict[str, tuple[Callable[[Question], Question], bool]] = {
    "other words": (lambda one: replace(one, text={"en": "Please?"}), True),
    "other labels": (
        lambda one: replace(one, choices=tuple(replace(c, label={"en": "x"}) for c in one.choices)),
        True,
    ),
    "another figure": (lambda one: replace(one, wanted=None), True),
    "no anchor": (lambda one: replace(one, anchor=None), True),
    "other scores": (
        lambda one: replace(one, choices=tuple(replace(c, score=None) for c in one.choices)),
        True,
    ),
    "another id": (lambda one: replace(one, id=f"{one.id}-x"), False),
    "another choice": (
        lambda one: replace(one, choices=tuple(replace(c, id=f"{c.id}x") for c in one.choices)),
        False,
    ),
    "no roles": (
        lambda one: replace(one, choices=tuple(replace(c, role=None) for c in one.choices)),
        False,
    ),
    "other ranges": (
        lambda one: replace(
            one, choices=tuple(replace(c, low=c.low and c.low + 1) for c in one.choices)
        ),
        False,
    ),
    "no rule": (lambda one: replace(one, ask_if=None), False),
    "no box": (lambda one: replace(one, box=None), False),
    "another role of a box": (
        lambda one: replace(one, box=one.box and replace(one.box, role=None)),
        False,
    ),
}


def form_of(*blocks: Block) -> str:
    """Return what a plan depends on; rules and roles of the blocks need not fit each other."""
    document: Any = SimpleNamespace(blocks=blocks, arms=None, whole=None)
    return Planning(document).form


@pytest.mark.parametrize("name", EDITS)
def test_a_plan_depends_on_what_is_asked_not_on_its_words(name: str) -> None:
    edit, is_same = EDITS[name]
    block = form(*QUESTIONS, drawn=True)
    edited = replace(block, questions=tuple(map(edit, QUESTIONS)))
    assert edited.questions != QUESTIONS
    assert (form_of(edited) == form_of(block)) == is_same


def test_a_plan_depends_on_every_form_and_on_no_other_block() -> None:
    block = form(*QUESTIONS[2:], drawn=True)
    first = replace(form(*QUESTIONS[:2]), id="first")
    assert form_of(first, block) == form_of(block)
    others = [
        form_of(replace(block, id="x")),
        form_of(replace(first, asks_drawn=True), block),
        form_of(form(*QUESTIONS[2:], epsilon="1", drawn=True)),
    ]
    assert len({form_of(block), *others}) == 4


@pytest.mark.usefixtures("driver")
def test_plans_of_two_chains_of_keys_are_apart(tmp_path: Path) -> None:
    """Another server with a survey of the same id can neither use nor delete a plan."""
    store, draws = tmp_path / "s.db", iter(range(2))
    servers = [fresh(), FakeServer(DOCUMENT, FakeClock(), Authority(CLOCK))]
    shown = []
    for server in servers:
        assert server.authority is not None
        keys = {"keys": server.authority.keys, "randbits": lambda bits: next(draws) << bits - 1}
        with server.open(store, **keys) as client:
            shown.append(client.plan().questions[1])
    assert shown == ["q0", "q4"]
    other = servers[1]
    assert other.authority is not None
    with other.open(store, keys=other.authority.keys) as client:
        client.answer(EVERYTHING)
    with servers[0].open(store, keys=AUTHORITY.keys) as client:
        assert client.plan().questions[1] == "q0"
    assert len(rows_of(store)) == 1


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("version", [4, 5])
def test_a_store_of_an_earlier_version_gets_the_table(version: int, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    fresh().open(store).close()
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DROP TABLE plans")
        if version == 4:
            db.execute("ALTER TABLE answers DROP COLUMN closes")
        db.execute(f"PRAGMA user_version = {version}")
    with fresh().open(store) as client:
        assert client.plan().asked == 2
        assert client.answer(EVERYTHING).status == "sent"


@pytest.mark.usefixtures("driver")
def test_a_plan_of_another_process_holds_for_answers_that_were_checked_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is stored after the answers were checked, and before they are sealed."""
    store, server = tmp_path / "s.db", fresh()
    with server.open(store) as client:
        planned = Sealing.planned

        def late(self: Sealing, rows: Any) -> Any:
            found = planned(self, rows)
            with fresh().open(store, randbits=begun((1 << 48) - 1)) as other:
                assert other.plan().questions == ("always", "q9")
            return found

        monkeypatch.setattr(Sealing, "planned", late)
        assert client.answer(EVERYTHING).status == "sent"
    assert shown_by(server.symbols(1)[0]) == {"q9"}


@pytest.mark.usefixtures("driver")
def test_a_refused_token_does_not_depend_on_the_plan(tmp_path: Path) -> None:
    document = replace(DOCUMENT, token=TokenRule("invite"))
    with fresh(document).open(tmp_path / "s.db") as client:
        for given in ({"always": "no"}, EVERYTHING):
            with pytest.raises(InvalidInput) as refused:
                client.answer(given, token="x")
            assert refused.value.code == "token_invalid"
    assert rows_of(tmp_path / "s.db") == []


def held_by_the_sdk() -> list[set[str]]:
    """Return the questions of every `Answer` that is still in memory."""
    gc.collect()
    answers = (one for one in gc.get_objects() if isinstance(one, Answer))
    return [set(one.revealed()) for one in answers if one.revealed()]


@pytest.mark.usefixtures("driver")
def test_no_answer_is_kept_while_the_report_waits(tmp_path: Path) -> None:
    server, held = fresh(), list[list[set[str]]]()

    def sleep(seconds: float) -> None:
        held.append(held_by_the_sdk())
        server.clock.sleep(seconds)

    before = held_by_the_sdk()
    with server.open(tmp_path / "s.db", sleep=sleep) as client:
        client.plan()
        assert client.answer(EVERYTHING).status == "sent"
    assert held
    assert all(answers == before for answers in held)


@pytest.mark.usefixtures("driver")
def test_plans_are_those_of_each_respondent_and_survey(tmp_path: Path) -> None:
    store, draws = tmp_path / "s.db", iter(range(3))
    other = make_survey({}, drawn=TEN, clock=CLOCK)
    source = lambda bits: next(draws) << bits - 2  # noqa: E731
    with fresh().open(store, randbits=source) as client:
        plans = [client.plan().questions[-1], client.plan(" 7 ").questions[-1]]
        assert client.plan("7").questions[-1] == plans[1]
    with fresh(other).open(store, randbits=source) as client:
        plans.append(client.plan().questions[-1])
    assert plans == ["q0", "q2", "q4"]
    assert len(rows_of(store)) == 3
    assert "7" not in [row[0] for row in rows_of(store)]


@pytest.mark.usefixtures("driver")
def test_a_plan_is_checked_like_an_answer_and_costs_nothing(tmp_path: Path) -> None:
    store, server = tmp_path / "s.db", fresh()
    another = fresh(make_survey({"x": ["no", "yes"]}, "1", clock=CLOCK))
    with server.open(store, policy=Policy(cap="2.5")) as client:
        before = client.budget()
        plan = client.plan()
        assert client.budget() == before
    with another.open(store, policy=Policy(cap="2.5")) as client:
        client.answer({"x": "no"})
    with server.open(store, policy=Policy(cap="4")) as client:
        assert client.plan().questions == plan.questions
        client._core.parts.sealing.__dict__["policy"] = Policy(cap="2.5")  # type: ignore[union-attr]
        with pytest.raises(BudgetExceeded):
            client.plan()
        with pytest.raises(BudgetExceeded):
            client.answer(EVERYTHING)
    # The plan survives.
    with server.open(store, policy=Policy(cap="4")) as client:
        assert client.plan().questions == plan.questions


@pytest.mark.usefixtures("driver")
def test_nobody_without_a_budget_gets_a_plan(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with fresh().open(store, policy=Policy(cap="2")) as client:
        client.answer(EVERYTHING, respondent="a")
    second = fresh(make_survey({}, drawn=TEN, clock=CLOCK))
    with second.open(store, policy=Policy(cap="2")) as client:
        with pytest.raises(BudgetExceeded):
            client.plan("a")
        rows: list[Any] = [("a", {}, {}), ("b", dict.fromkeys(TEN, "no"), {})]
        assert [one.status for one in client.randomise_many(rows)] == ["over_budget", "sealed"]
    assert rows_of(store) == []


@pytest.mark.usefixtures("driver")
def test_outside_its_window_a_survey_has_no_plan(tmp_path: Path) -> None:
    server = fresh()
    with server.open(tmp_path / "s.db") as client:
        server.clock.sleep(31 * 86_400)
        with pytest.raises(SurveyClosed):
            client.plan()
        server.clock.sleep(-33 * 86_400)
        with pytest.raises(ClockError):
            client.plan()
    assert rows_of(tmp_path / "s.db") == []


@pytest.mark.usefixtures("driver")
def test_after_an_answer_there_is_no_plan(tmp_path: Path) -> None:
    server = fresh()
    with server.open(tmp_path / "s.db", spread_s=0) as client:
        server.network.then(*[drop()] * 3)
        assert client.answer(EVERYTHING, patience_s=0).status == "queued"
        with pytest.raises(AlreadyAnswered) as waiting:
            client.plan()
        assert waiting.value.receipt.status in ("queued", "sent")
        client.flush(600)
        with pytest.raises(AlreadyAnswered) as sent:
            client.plan()
        assert sent.value.receipt.status == "sent"
    assert len(server.reports) == 1


@pytest.mark.usefixtures("driver")
def test_a_plan_that_is_not_stored_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Database.run

    def full(self: Database, statement: str, *values: object) -> None:
        if statement == "COMMIT":
            raise StoreError("the disk is full")
        run(self, statement, *values)

    with fresh().open(tmp_path / "s.db") as client:
        with monkeypatch.context() as patched:
            patched.setattr(Database, "run", full)
            with pytest.raises(StoreError):
                client.plan()
        assert rows_of(tmp_path / "s.db") == []
        assert client.plan().asked == 2


DAMAGED = [
    "x", "5", "null", "{}", "[]", "[1]", "[[0, 5]]", "[[1]]", '[["a", [0]]]', "[[0.0, [0]]]", "[[1, [1.0]]]",
    "[[true, [1]]]", "[[-1, [9]]]", "[[9, [-1]]]", "[[99, [0]]]", "[[0, [1]]]", "[[0, [0]], [0, [0]]]",
]  # fmt: skip


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_plan_is_an_error_of_the_store(text: str, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with fresh().open(store) as client:
        client.plan()
        with closing(sqlite3.connect(store)) as db, db:
            db.execute("UPDATE plans SET plan = ?", (text,))
        for call in (client.plan, lambda: client.answer(EVERYTHING)):
            with pytest.raises(StoreError, match="damaged"):
                call()


@pytest.mark.usefixtures("driver")
def test_no_traceback_shows_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Database.run

    def full(self: Database, statement: str, *values: object) -> None:
        if statement.startswith("INSERT INTO plans"):
            raise StoreError("the disk is full")
        run(self, statement, *values)

    monkeypatch.setattr(Database, "run", full)
    with fresh().open(tmp_path / "s.db", randbits=begun((1 << 48) - 1)) as client:
        try:
            client.plan()
        except StoreError as fault:
            shown = "".join(
                traceback.TracebackException.from_exception(fault, capture_locals=True).format()
            )
            assert "[[9," not in shown
            assert "the disk is full" in shown
        else:
            raise AssertionError


@pytest.mark.usefixtures("driver")
def test_without_random_bits_there_is_no_plan(tmp_path: Path) -> None:
    def broken(_bits: int) -> int:
        raise OSError

    with fresh().open(tmp_path / "s.db", randbits=broken) as client:
        with pytest.raises(RandomnessError):
            client.plan()
        with pytest.raises(RandomnessError):
            client.answer(EVERYTHING)
    assert rows_of(tmp_path / "s.db") == []


@pytest.mark.usefixtures("driver")
def test_a_plan_shows_itself_to_nobody(tmp_path: Path) -> None:
    events: list[Event] = []
    with fresh().open(tmp_path / "s.db", on_event=events.append) as client:
        plan = client.plan()
        text = f"{plan!r} {plan}"
    assert not any(name in text for name in TEN)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            copied(plan)
    assert Event("planned", DOCUMENT.survey) in events


@pytest.mark.usefixtures("driver")
def test_a_survey_that_asks_everything_has_a_plan_of_everything(tmp_path: Path) -> None:
    document = make_survey({"a": ["no", "yes"], "b": ["no", "yes"]}, clock=CLOCK)
    with fresh(document).open(tmp_path / "s.db") as client:
        plan = client.plan()
        assert (plan.questions, plan.asked, plan.of) == (("a", "b"), 2, 2)
        assert rows_of(tmp_path / "s.db") == []
        with pytest.raises(UnknownChoice):
            client.answer({"a": "no"})
        client.answer({"a": "no", "b": "yes"})
        with pytest.raises(AlreadyAnswered):
            client.plan()
    with fresh(document).open(tmp_path / "t.db", enabled=False) as client, pytest.raises(Disabled):
        client.plan()


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("document", "spread_s", "limit"),
    [
        (DOCUMENT, None, 30),
        (DOCUMENT, 0, 0),
        (make_survey({"always": ["no", "yes"]}, clock=CLOCK), None, 0.01),
    ],
    ids=["drawn", "as the app says", "all"],
)
def test_reports_are_spread_so_that_hesitation_does_not_show(
    document: SurveyDocument,
    spread_s: float | None,
    limit: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The random moment is the whole of the limit, and an answer waits for it by default."""
    for share in (0.0, 0.5, 1.0):
        monkeypatch.setattr("frankly_sdk.delivery.uniform", lambda share=share: share)
        server, store = fresh(document), tmp_path / f"{share}.db"
        with server.open(store, spread_s=spread_s) as client:
            begun = server.clock.timer()
            given = EVERYTHING if document is DOCUMENT else {"always": "no"}
            assert client.answer(given).status == "sent"
            assert server.clock.timer() - begun == pytest.approx(share * limit, abs=1e-6)
            if share * limit > 10:
                answer = client.answer(given, respondent="b", patience_s=10)
                assert (answer.status, answer.code) == ("queued", "scheduled")


def documents_with_rules() -> Iterator[tuple[SurveyDocument, tuple[Question, ...]]]:
    """Yield documents with rules, boxes and numbers, in one form and across blocks."""
    base = make_survey({"x": ["no", "yes"]}, clock=CLOCK)
    yield replace(base, blocks=(form(*QUESTIONS, drawn=True),)), QUESTIONS
    first, others = QUESTIONS[:2], QUESTIONS[2:]
    asked = replace(form(*first), id="first"), form(*others, drawn=True)
    yield replace(base, blocks=asked), QUESTIONS


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("case", range(2))
def test_rules_and_boxes_bring_what_they_need(case: int, tmp_path: Path) -> None:
    document, questions = list(documents_with_rules())[case]
    given = {"age": 52, "work": "yes", "stress": "hard", "signs": ["pain"], "drugs": []}
    whole = {one.box.of if one.box else one.id for one in questions}
    assert whole == set(given)
    sizes = set()
    for i in range(16):
        server = fresh(document)
        with server.open(
            tmp_path / f"{i}.db", policy=Policy(cap="9"), randbits=begun(i << 44)
        ) as client:
            plan = client.plan()
            names = {
                one.box.of if one.box else one.id for one in questions if one.id in plan.questions
            }
            assert plan.asked == len(names)
            if SIGNS[0].id in plan.questions:
                assert {one.id for one in (WORK, *SIGNS)} | {"stress"} <= set(plan.questions)
            if case:
                assert {AGE.id, WORK.id} <= set(plan.questions)
            for name in names:
                with pytest.raises(UnknownChoice):
                    client.answer({one: given[one] for one in names - {name}})
            assert client.answer({name: given[name] for name in names}).status == "sent"
            sizes.add(plan.asked)
        assert shown_by(server.symbols(-1)[0], document) <= set(plan.questions)
    assert len(sizes) > 1
    assert max(sizes) <= Asking(document.blocks).most


@pytest.mark.usefixtures("driver")
def test_a_table_leaves_cells_empty_that_were_not_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, store = fresh(), str(tmp_path / "s.db")
    table, output = tmp_path / "in.csv", tmp_path / "out.jsonl"
    named = ["--link", server.link, "--store", store]

    def run(*arguments: str) -> tuple[int, str]:
        status = main([*arguments, *named], lambda options: server.open(options.store))
        written = capsys.readouterr()
        return status, written.out + written.err

    asked = {}
    for key in "ab":
        status, text = run("plan", "--respondent", key)
        first, always, other = text.splitlines()
        assert (status, first, always) == (0, "Ask 2 of 11 questions.", "always: always? (no, yes)")
        asked[key] = other.split(":")[0]
    columns = ["always", *TEN]

    def line(key: str, answered: set[str]) -> str:
        return ",".join([key, *("no" if name in answered else "" for name in columns)])

    def write(*lines: str) -> None:
        table.write_text("\n".join([",".join(["respondent", *columns]), *lines]) + "\n")

    whole = line("a", {"always", asked["a"]})
    write(whole, line("b", {"always"}))
    status, text = run("randomise", str(table), str(output))
    assert (status, output.exists(), server.reports) == (3, False, {})
    assert f"line 3, column {asked['b']}: this question has no answer" in text
    write(whole, line("b", {"always", asked["b"]}), line("c", {"always", *TEN}))
    status, text = run("randomise", str(table), str(output))
    assert (status, len(output.read_text().splitlines())) == (0, 3)
    status, text = run("plan", "--respondent", "a")
    assert (status, "already been answered" in text) == (4, True)


@pytest.mark.usefixtures("driver")
def test_no_moment_is_after_the_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frankly_sdk.delivery.uniform", lambda: 1.0)
    for left, wait in ((60, 30), (25, 15), (5, 0)):
        server = fresh()
        with server.open(tmp_path / f"{left}.db") as client:
            server.clock.sleep(30 * 86_400 - left)
            begun_at = server.clock.timer()
            assert client.answer(EVERYTHING).status == "sent"
            assert server.clock.timer() - begun_at == pytest.approx(wait, abs=1e-3)


@pytest.mark.usefixtures("driver")
def test_surveys_that_ask_everything_keep_their_patience(tmp_path: Path) -> None:
    server = fresh(make_survey({"a": ["no", "yes"]}, clock=CLOCK))
    with server.open(tmp_path / "s.db", spread_s=3600) as client:
        begun_at = server.clock.timer()
        assert client.answer({"a": "no"}).status in ("queued", "sent")
        assert server.clock.timer() - begun_at <= 10
