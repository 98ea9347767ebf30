# SPDX-License-Identifier: Apache-2.0
"""Arms: the device draws one, stores it before it asks, and reports on that one (spec 3.10, 4.5)."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.tokens import TokenRule
from frankly_sdk import (
    AlreadyAnswered,
    BudgetExceeded,
    InvalidInput,
    Policy,
    StoreError,
    UnknownChoice,
)
from frankly_sdk._sealing import Sealing
from frankly_sdk.cli import main
from frankly_sdk.testing import Authority, FakeClock, FakeServer, make_survey

from tests.frankly_protocol.samples import armed
from tests.frankly_sdk.drivers import driver  # noqa: F401
from tests.frankly_sdk.test_plan import begun

CLOCK = FakeClock()
AUTHORITY = Authority(CLOCK)
TEN = {f"q{i}": ["no", "yes"] for i in range(10)}
SURVEY = make_survey(
    {"work": ["no", "yes"], "home": ["no", "yes"]},
    drawn=TEN,
    strata={"region": ["north", "south"]},
    arms={"a": ["region", "work"], "b": ["home", "work"], "c": ["form"]},
    clock=CLOCK,
)
ANSWERS = dict.fromkeys(["work", "home", *TEN], "yes")
STRATA = {"region": "north"}


def fresh(document: SurveyDocument = SURVEY) -> FakeServer:
    return FakeServer(document, FakeClock(), AUTHORITY)


def drawing(arm: int, document: SurveyDocument = SURVEY) -> Callable[[int], int]:
    """Return a source of random bits that begins with those of an arm."""
    arms = document.arms
    assert arms is not None
    return begun(sum(one.chance for one in arms.arms[:arm]) or 1)


def in_both() -> SurveyDocument:
    """Return a survey with a question that is public in one arm and protected in others."""
    document = armed()
    return replace(
        document,
        issued=CLOCK.now(),
        opens=CLOCK.now(),
        closes=SURVEY.closes,
        expires=SURVEY.expires,
        collect_url=SURVEY.collect_url.replace(SURVEY.survey, document.survey),
    )


def report_of(server: FakeServer) -> Any:
    (body,) = [json.loads(request.body) for request in server.requests if request.body]
    return body


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("arm", "asked", "symbols", "strata"),
    [
        ("a", ("work",), 1, {"arm": "a", "region": "north"}),
        ("b", ("home", "work"), 2, {"arm": "b"}),
        ("c", None, 1, {"arm": "c"}),
    ],
)
def test_the_report_is_of_the_arm_that_was_asked(
    arm: str, asked: tuple[str, ...] | None, symbols: int, strata: dict[str, str], tmp_path: Path
) -> None:
    server = fresh()
    with server.open(tmp_path / "s.db", randbits=drawing("abc".index(arm))) as client:
        plan = client.plan()
        assert plan.arm == arm
        assert plan.questions == asked or (asked is None and plan.questions[0] in TEN)
        assert (plan.asked, plan.of) == ((1, 10) if arm == "c" else (symbols, symbols))
        view = client.survey.arms[arm]
        given = dict.fromkeys(plan.questions, "yes")
        client.answer(given, strata=dict.fromkeys(view.document.open_questions, "north"))
        client.flush()
    report = report_of(server)
    assert len(report["y"]) == symbols
    assert report["strata"] == strata
    assert {len(request.body) for request in server.requests if request.body} == {
        SURVEY.report_length
    }


@pytest.mark.usefixtures("driver")
def test_an_arm_is_drawn_once_whoever_asks_again(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with fresh().open(store, randbits=drawing(1)) as client:
        assert client.plan().arm == "b"
    for arm in range(3):
        with fresh().open(store, randbits=drawing(arm)) as client:
            assert client.plan().arm == "b"
    server = fresh()
    with server.open(store, randbits=drawing(2)) as client:
        assert client.answer(ANSWERS, strata=STRATA).status == "sent"
        with pytest.raises(AlreadyAnswered):
            client.plan()
        with pytest.raises(AlreadyAnswered):
            client.answer(ANSWERS, strata=STRATA)
        with pytest.raises(AlreadyAnswered):
            client.answer({})
    assert report_of(server)["strata"] == {"arm": "b"}
    with closing(sqlite3.connect(store)) as db:
        assert db.execute("SELECT count(*) FROM plans").fetchone() == (0,)


@pytest.mark.usefixtures("driver")
def test_answers_without_a_plan_get_an_arm_that_is_stored_first(tmp_path: Path) -> None:
    """The arm is drawn before the answers are looked at, so it cannot depend on them."""
    store = tmp_path / "s.db"
    with fresh().open(store, randbits=drawing(1)) as client:
        with pytest.raises(UnknownChoice) as refused:
            client.answer({"work": "yes"})
        assert refused.value.field == "home"
    with fresh().open(store, randbits=drawing(0)) as client:
        assert client.plan().arm == "b"
        for wrong in ({"work": "yes", "home": "maybe"}, {**ANSWERS, "x": "yes"}):
            with pytest.raises(UnknownChoice):
                client.answer(wrong)


@pytest.mark.usefixtures("driver")
def test_answers_to_questions_of_other_arms_are_dropped_unread(tmp_path: Path) -> None:
    server = fresh()
    with server.open(tmp_path / "s.db", randbits=drawing(0)) as client:
        given = {**ANSWERS, "home": object(), "q3": []}
        assert client.answer(given, strata=STRATA).status == "sent"  # type: ignore[arg-type]
    assert report_of(server)["strata"] == {"arm": "a", "region": "north"}


@pytest.mark.usefixtures("driver")
def test_a_question_can_be_public_in_one_arm_and_protected_in_another(tmp_path: Path) -> None:
    document = in_both()
    both = {"affair": "yes", "region": "north"}
    for arm, strata in enumerate([both | {"arm": "clear"}, {"arm": "strong", "region": "north"}]):
        server = fresh(document)
        with server.open(tmp_path / f"{arm}.db", randbits=drawing(arm, document)) as client:
            answers = {"affair": "yes", "work": "no"}
            assert client.answer(answers, strata=both).status == "sent"
        assert report_of(server)["strata"] == strata
        assert len(report_of(server)["y"]) == arm


@pytest.mark.usefixtures("driver")
def test_the_largest_arm_is_checked_and_the_drawn_one_is_charged(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    # One question costs 1 nat, and the arm b, which has two, 2 nats.
    with fresh().open(store, policy=Policy(cap="2.5"), randbits=drawing(0)) as client:
        assert client.budget().cost == "2.0000"
        assert client.answer(ANSWERS, strata=STRATA).status == "sent"
        assert client.budget().left == "1.5000"
    second = fresh(
        replace(
            SURVEY,
            survey="cd" * 16,
            collect_url=SURVEY.collect_url.replace(SURVEY.survey, "cd" * 16),
        )
    )
    with second.open(store, policy=Policy(cap="5")) as client:
        sealing = client._core.parts.sealing  # type: ignore[union-attr]
        sealing.__dict__["policy"] = Policy(cap="2.5")
        # 1 nat would be enough for two of the arms; then the budgets of people would differ by arm.
        for call in (client.plan, lambda: client.answer(ANSWERS, strata=STRATA)):
            with pytest.raises(BudgetExceeded):
                call()
    with closing(sqlite3.connect(store)) as db:
        assert db.execute("SELECT count(*) FROM plans").fetchone() == (0,)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("arm", range(3))
def test_answers_in_between_leave_out_people_of_all_arms_or_of_none(
    arm: int, tmp_path: Path
) -> None:
    """Room for the drawn arm alone is not enough, or those with a cheap arm would be left."""
    store, other = tmp_path / "s.db", fresh(make_survey({"x": ["no", "yes"]}, "1", clock=CLOCK))
    with fresh().open(store, policy=Policy(cap="2.5"), randbits=drawing(arm)) as client:
        client.plan()
    with other.open(store, policy=Policy(cap="2.5")) as client:
        assert client.answer({"x": "no"}).status == "sent"
    with fresh().open(store, policy=Policy(cap="9")) as client:
        client._core.parts.sealing.__dict__["policy"] = Policy(cap="2.5")  # type: ignore[union-attr]
        with pytest.raises(BudgetExceeded):
            client.answer(ANSWERS, strata=STRATA)


@pytest.mark.usefixtures("driver")
def test_a_batch_draws_an_arm_for_each_respondent(tmp_path: Path) -> None:
    server = fresh()
    with server.open(tmp_path / "s.db") as client:
        rows: list[Any] = [(str(i), ANSWERS, STRATA) for i in range(60)]
        results = list(client.randomise_many(rows))
        assert {one.status for one in results} == {"sealed"}
        again = list(client.randomise_many(rows))
        assert [one.report for one in again] == [one.report for one in results]
        drawn = [json.loads(one.report or b"")["strata"]["arm"] for one in results]
        assert set(drawn) == {"a", "b", "c"}
        # No arm asks work alone without region.
        with pytest.raises(UnknownChoice) as refused:
            list(client.randomise_many([("x", {"work": "no"}, {})]))
        assert str(refused.value.field).startswith("rows[0]")
    assert {len(one.report or b"") for one in results} == {SURVEY.report_length}


@pytest.mark.usefixtures("driver")
def test_rows_over_the_budget_get_no_arm(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with fresh(make_survey({"x": ["no", "yes"]}, "1", clock=CLOCK)).open(store) as client:
        client.answer({"x": "no"}, respondent="a")
    with fresh().open(store, policy=Policy(cap="2.5")) as client:
        rows: list[Any] = [("a", ANSWERS, STRATA), ("b", ANSWERS, STRATA)]
        assert [one.status for one in client.randomise_many(rows)] == ["over_budget", "sealed"]


@pytest.mark.usefixtures("driver")
def test_a_refused_token_draws_no_arm(tmp_path: Path) -> None:
    document = replace(SURVEY, token=TokenRule("invite"))
    with fresh(document).open(tmp_path / "s.db") as client:
        with pytest.raises(InvalidInput):
            client.answer(ANSWERS, strata=STRATA, token="x y")
        with pytest.raises(InvalidInput, match="rows"):
            list(client.randomise_many([("a", ANSWERS, STRATA, "x y")]))
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        assert db.execute("SELECT count(*) FROM plans").fetchone() == (0,)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("text", ["[]", "{}", '["d", []]', '["a"]', '["a", [[0, [0]]]]', "x"])
def test_a_damaged_arm_is_an_error_of_the_store(text: str, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with fresh().open(store, randbits=drawing(0)) as client:
        client.plan()
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE plans SET plan = ?", (text,))
    with fresh().open(store) as client:
        for call in (client.plan, lambda: client.answer(ANSWERS, strata=STRATA)):
            with pytest.raises(StoreError):
                call()


@pytest.mark.usefixtures("driver")
def test_without_its_arm_an_answer_is_not_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, fitted = tmp_path / "s.db", Sealing.fitted

    def gone(self: Sealing, row: Any) -> Any:
        result = fitted(self, row)
        with closing(sqlite3.connect(store)) as db, db:
            db.execute("DELETE FROM plans")
        return result

    monkeypatch.setattr(Sealing, "fitted", gone)
    with fresh().open(store) as client, pytest.raises(StoreError, match="gone"):
        client.answer(ANSWERS, strata=STRATA)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("change", "keeps"),
    [
        (lambda document: replace(document, title={"en": "Other words"}), True),
        (lambda document: replace(document, arms=replace(document.arms, id="version")), False),
        (
            lambda document: replace(
                document,
                arms=replace(
                    document.arms,
                    arms=(
                        replace(document.arms.arms[0], chance=document.arms.arms[0].chance + 1),
                        replace(document.arms.arms[1], chance=document.arms.arms[1].chance - 1),
                        document.arms.arms[2],
                    ),
                ),
            ),
            False,
        ),
    ],
)
def test_a_new_version_keeps_the_arm_if_the_arms_are_the_same(
    change: Callable[[Any], SurveyDocument], keeps: bool, tmp_path: Path
) -> None:
    store = tmp_path / "s.db"
    with fresh().open(store, randbits=drawing(1)) as client:
        assert client.plan().arm == "b"
    newer = replace(change(SURVEY), version=2, prev=SURVEY.digest)
    with fresh(newer).open(store, randbits=drawing(0)) as client:
        assert client.plan().arm == ("b" if keeps else "a")


@pytest.mark.usefixtures("driver")
def test_the_explanation_is_of_one_arm_and_says_so(tmp_path: Path) -> None:
    with fresh().open(tmp_path / "s.db", randbits=drawing(0)) as client:
        plan = client.plan()
        assert plan.arm is not None
        own = client.survey.arms[plan.arm].explain()
        text = str(own)
        assert "This survey has 3 versions" in text
        assert "the version “a”" in text
        assert '"arm":"a"' in own.report_template
        assert "home" not in text
        # Before the draw it is that of the arm that costs most.
        assert "the version “b”" in str(client.survey.explain())
        assert own.form_nats == "1.0000"
        assert len(own.example) == SURVEY.report_length


@pytest.mark.usefixtures("driver")
def test_a_table_has_one_column_for_a_question_of_several_arms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = in_both()
    server, table, output = fresh(document), tmp_path / "in.csv", tmp_path / "out.jsonl"
    named = ["--link", server.link, "--store", str(tmp_path / "s.db")]

    def run(*arguments: str) -> tuple[int, str]:
        status = main([*arguments, *named], lambda options: server.open(options.store))
        written = capsys.readouterr()
        return status, written.out + written.err

    status, text = run("plan", "--respondent", "0")
    arm = text.split()[1].rstrip(",")
    assert (status, arm in document.views) == (0, True)
    rows = [f"{i},yes,no,north" for i in range(40)]
    table.write_text("\n".join(["respondent,affair,work,region", *rows]) + "\n")
    status, text = run("randomise", str(table), str(output))
    assert status == 0, text
    reports = [json.loads(line) for line in output.read_text().splitlines()]
    assert len(reports) == 40
    assert {one["strata"]["arm"] for one in reports} == set(document.views)
    for one in reports:
        clear = one["strata"]["arm"] == "clear"
        assert one["strata"].get("affair") == ("yes" if clear else None)
        assert len(one["y"]) == len(document.views[one["strata"]["arm"]].blocks)
    table.write_text("respondent,affair,work,region\nz,yes,no,\n")
    output.unlink()
    status, text = run("randomise", str(table), str(output))
    assert (status, "line 2, column region: this question has no answer" in text) == (3, True), text
