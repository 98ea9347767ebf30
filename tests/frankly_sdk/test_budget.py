# SPDX-License-Identifier: Apache-2.0
"""Previews of the ledger, surveys without a finite cost, and the cap on the leakage of one report."""

import io
import json
from dataclasses import replace
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import Charge, Claim, ceiling, level_for, ln_up
from frankly_protocol.blocks import Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.explanation.budget import nats_left
from frankly_protocol.mechanisms import DenseMechanism
from frankly_sdk import (
    Budget,
    BudgetExceeded,
    Client,
    Disabled,
    Policy,
    PolicyRefused,
    cli,
    conformance,
)
from frankly_sdk.cli import main
from frankly_sdk.store import Store
from frankly_sdk.testing import FakeServer, make_survey

from tests.frankly_protocol.samples import dp_block, ldp_block, lip_block, survey
from tests.frankly_sdk import fakes
from tests.frankly_sdk.worlds import Person, block_of, document_of, promise
from tests.refusals import refusal

IDENTITY = DenseMechanism(4, ((16, 0), (0, 16)))
LEAKY = DenseMechanism(4, ((16, 0), (8, 8)))
TRUE_WORLD = [Person(25, z, {"hiv": x ^ z}, (x,)) for z in range(2) for x in range(2)]
"""The secret is the answer xor the stratum, so every table of all people is flat and true."""


def xor_survey() -> SurveyDocument:
    """Return a survey with an identity mechanism, 0-LIP under its true table, and a public question
    that reveals the secret together with it."""
    prior = Prior("hiv", ("no", "yes"), (((25, 25), (25, 25)),), "a true table")
    block = block_of("x", IDENTITY, Promise.under(Claim("lip", (1, 1), prior.table), prior))
    return document_of(block, strata=2)


def stratified_survey(mechanism: DenseMechanism, people: list[Person]) -> SurveyDocument:
    stratified_promise = promise(people, "hiv", 0, mechanism, stratified=True)
    return document_of(block_of("x", mechanism, stratified_promise), strata=2)


def final(document: SurveyDocument, **limits: str) -> Policy:
    return Policy(final_surveys=(document.survey,), **limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("cap", ["5", "64"])
def test_a_promise_that_public_answers_undo_is_refused_also_when_pinned_and_named(
    cap: str, tmp_path: Path
) -> None:
    document = xor_survey()
    for policy in (Policy(cap=cap), final(document, cap=cap)):
        with pytest.raises(PolicyRefused) as caught:
            fakes.FakeServer(document=document).open(tmp_path / "s.db", policy=policy)
        assert (caught.value.code, caught.value.field) == ("policy_composition", "blocks")
        assert "“hiv”" in caught.value.detail
        assert "counts for every stratum" in caught.value.detail


def test_with_a_prior_for_each_stratum_it_is_accepted_if_its_mechanism_keeps_it(
    tmp_path: Path,
) -> None:
    """The identity leaks without limit within a stratum; LEAKY, in a world with weaker dependence,
    does not."""
    with pytest.raises(AssertionError, match="no finite leakage"):
        stratified_survey(IDENTITY, TRUE_WORLD)
    mild = [
        Person(n, z, {"hiv": s}, (x,))
        for z in range(2)
        for s in range(2)
        for x, n in enumerate((5 + s + z, 4 + s))
    ]
    document = stratified_survey(LEAKY, mild)
    with fakes.FakeServer(document=document).open(
        tmp_path / "s.db", policy=final(document)
    ) as client:
        assert "Given your public answers" in str(client.survey.explain())
        assert client.answer({"x": "c1"}, strata={"region": "r0"}).status == "sent"
    merged = promise(mild, "hiv", 0, LEAKY, stratified=False)
    unstratified = document_of(block_of("x", LEAKY, merged), strata=2)
    with pytest.raises(PolicyRefused) as caught:
        fakes.FakeServer(document=unstratified).open(tmp_path / "t.db", policy=final(document))
    assert caught.value.reason == "composition"


def test_the_cap_counts_nats_of_odds(tmp_path: Path) -> None:
    """The answer is the secret, and most people have the third: 4.9-LIP under the true table is 9.8
    nats of odds."""
    total = 1 << 48
    high = total * 9 // 10
    mean = round(high / exp(4.9))
    low = round(mean / exp(4.9))
    rows = (
        (high, low, total - high - low),
        (low, high, total - high - low),
        (mean, mean, total - 2 * mean),
    )
    mechanism = DenseMechanism(48, rows)
    people = [Person(n, 0, {"x": s}, (s,)) for s, n in enumerate((1, 1, 10**6))]
    exact_promise = promise(people, "x", 0, mechanism, stratified=False)
    rounded_promise = replace(
        exact_promise, claim=replace(exact_promise.claim, level=level_for(Fraction("4.91")))
    )
    document = document_of(block_of("x", mechanism, rounded_promise))
    odds = Fraction(high, low)
    assert log(odds) > 9.7
    error = refusal(PolicyRefused, fakes.FakeServer(document=document).open, tmp_path / "s.db")
    assert (error.code, error.field) == ("policy_cap", "blocks")
    assert f"by {ln_up(odds)} nats" in error.detail
    fakes.FakeServer(document=document).open(
        tmp_path / "t.db", policy=Policy(cap=ln_up(odds))
    ).close()


def endless(i: int = 1) -> fakes.FakeServer:
    """Return a survey that promises 0.5-LIP for one secret and has no finite ceiling."""
    return fakes.FakeServer(document=survey(lip_block("q"), survey_id=f"{i:032x}"))


def test_a_survey_that_would_use_up_the_budget_for_ever_is_refused_unless_it_is_named(
    tmp_path: Path,
) -> None:
    server = endless()
    with pytest.raises(PolicyRefused) as caught:
        server.open(tmp_path / "s.db", policy=Policy(final_surveys=("ab" * 16,)))
    assert (caught.value.code, caught.value.field) == ("policy_final", "blocks")
    assert "final_surveys" in caught.value.detail
    with server.open(tmp_path / "s.db", policy=final(server.document)) as client:
        assert client.budget() == Budget(
            "inf", "0", "5", "0.0000", "5.0000", "0.0000", False, True, True
        )
        assert "uses up for good" in str(client.survey.explain(budget=client.budget()))
        assert client.answer({"q": "good"}).status == "sent"
        assert client.budget() == Budget(
            "0.0000", "0", "5", "inf", "0.0000", "0.0000", True, False, False
        )
    with pytest.raises(BudgetExceeded):
        fakes.FakeServer(document=survey(ldp_block(epsilon="0.01"))).open(tmp_path / "s.db")
    with pytest.raises(BudgetExceeded):  # not even another final survey
        endless(2).open(tmp_path / "s.db", policy=final(endless(2).document))


def test_a_final_survey_is_answered_first_or_not_at_all(tmp_path: Path) -> None:
    with fakes.FakeServer(document=survey(ldp_block(epsilon="0.01"))).open(
        tmp_path / "s.db"
    ) as client:
        client.answer({"affair": "no"})
    with pytest.raises(BudgetExceeded) as caught:
        endless().open(tmp_path / "s.db", policy=final(endless().document))
    assert "must be answered before any other survey" in caught.value.detail


def test_a_final_survey_must_keep_its_secrets_within_the_cap(tmp_path: Path) -> None:
    for cap, fits in (("0.99", False), ("1", True)):  # 0.5-LIP changes odds by 1 nat
        policy = final(endless().document, cap=cap)
        if fits:
            endless().open(tmp_path / "s.db", policy=policy).close()
            continue
        error = refusal(PolicyRefused, endless().open, tmp_path / "s.db", policy=policy)
        assert error.reason == "cap"


def test_each_respondent_has_a_budget_of_their_own_under_the_lock(tmp_path: Path) -> None:
    """For a final survey over the cap, only respondents with other answers exceed the budget."""
    earlier_survey = fakes.FakeServer(document=survey(ldp_block(epsilon="1")))
    with earlier_survey.open(tmp_path / "s.db") as client:
        client.answer({"affair": "no"}, respondent="early")
    with endless().open(tmp_path / "s.db", policy=final(endless().document)) as client:
        assert not client.budget("early").can_answer
        assert client.budget("late").can_answer
        rows: list[tuple[str, Any, dict[str, str]]] = [
            (key, {"q": "good"}, {}) for key in ("early", "late")
        ]
        assert [row.status for row in client.randomise_many(rows)] == ["over_budget", "sealed"]
        assert client.budget("late").is_answered


def test_figures_are_rounded_to_the_safe_side(tmp_path: Path) -> None:
    spent: list[float] = []
    for i, epsilon in enumerate(("0.333333", "1", "0.7777777", "2.5")):
        server = fakes.FakeServer(document=survey(ldp_block("q", epsilon), survey_id=f"{i:032x}"))
        with server.open(tmp_path / "s.db") as client:
            true = log(client.survey.level.cost.odds or 1)
            before = client.budget()
            assert (before.is_answered, before.is_final, before.can_answer) == (False, False, True)
            assert 0 <= float(before.cost) - true < 1e-4
            assert 0 <= float(before.spent) - sum(spent) < 1e-4
            assert 0 <= (5 - sum(spent)) - float(before.left) < 2e-4
            assert 0 <= (5 - sum(spent) - true) - float(before.left_after) < 2e-4
            client.answer({"q": "no"})
            after = client.budget()
            assert (after.cost, after.left, after.left_after) == (
                "0.0000",
                before.left_after,
                before.left_after,
            )
            assert (after.is_answered, after.can_answer) == (True, False)
            spent.append(true)


def test_the_rest_of_a_cap_with_many_digits_is_rounded_down(tmp_path: Path) -> None:
    with fakes.FakeServer(document=survey(ldp_block())).open(
        tmp_path / "s.db", policy=Policy(cap="1.99999")
    ) as client:
        assert (client.budget().left, client.budget().left_after) == ("1.9999", "0.9999")


def test_nothing_is_left_of_a_cap_that_is_overdrawn() -> None:
    """A final survey can cost more than the remaining budget, which is then 0, not negative."""
    assert nats_left("1", Charge(Fraction(2))) == "0.3068"
    assert nats_left("1", Charge(Fraction(3))) == "0.0000"
    assert nats_left("1", Charge(None)) == "0.0000"


def test_a_cap_of_forty_digits_is_not_rounded_before_its_rest() -> None:
    assert nats_left("1." + "0" * 3 + "9" * 36, Charge(Fraction(1))) == "1.0009"


def test_a_form_over_the_remaining_budget_is_refused_with_the_reason(tmp_path: Path) -> None:
    with (
        fakes.FakeServer(document=survey(ldp_block(epsilon="1"))).open(
            tmp_path / "s.db", policy=Policy(cap="1.5")
        ) as a,
        fakes.FakeServer(document=survey(ldp_block(), survey_id="cd" * 16)).open(
            tmp_path / "s.db", policy=Policy(cap="1.5")
        ) as b,
    ):
        a.answer({"affair": "no"})
        budget = b.budget()
        assert (budget.can_answer, budget.left, budget.left_after) == (False, "0.5000", "0.5000")
        assert (
            "cannot answer this here: it would cost 1.0000 nats, and 0.5000 of the 1.5 nats"
            in str(budget)
        )


def test_once_delta_is_used_up_the_ceilings_are_the_cost(tmp_path: Path) -> None:
    def server(i: int) -> fakes.FakeServer:
        return fakes.FakeServer(document=survey(dp_block("q"), survey_id=f"{i:032x}"))

    policy = Policy(delta_cap="0.000001")
    with (
        server(1).open(tmp_path / "s.db", policy=policy) as first,
        server(2).open(tmp_path / "s.db", policy=policy) as second,
    ):
        assert (first.budget().cost, first.budget().delta) == ("1.0001", "0.000000954")
        first.answer({"q": "no"})
        assert (second.budget().cost, second.budget().delta, second.budget().can_answer) == (
            "inf",
            "0",
            False,
        )
        store = Store(tmp_path / "s.db")
        assert [charge.delta for charge in store.spent()] == [Fraction(1, 1 << 20)]
        store.close()


def test_reading_the_budget_costs_nothing_and_a_disabled_client_has_none(tmp_path: Path) -> None:
    server = FakeServer(make_survey({"q": ["no", "yes"]}))
    with server.open(tmp_path / "s.db") as client:
        assert client.budget() == client.budget()
        assert refusal(InvalidInput, client.budget, " ").field == "respondent"
    assert len(server.requests) == 2  # keys and document
    with Client.open(server.link, tmp_path / "t.db", enabled=False) as off, pytest.raises(Disabled):
        off.budget()


NOT_IDS = [
    "ab" * 16,
    ("AB" * 16,),
    ("ab" * 15,),
    ("ab" * 16 + "\n",),
    (None,),
    None,
    7,
    {"ab" * 16},
]


@pytest.mark.parametrize("surveys", NOT_IDS, ids=range(len(NOT_IDS)))
def test_final_surveys_are_ids(surveys: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Policy(final_surveys=surveys)  # type: ignore[arg-type]
    assert caught.value.code == "field_type"
    assert (caught.value.field or "").startswith("final_surveys")
    assert Policy(final_surveys=["ab" * 16]).final_surveys == ("ab" * 16,)  # type: ignore[arg-type]


def test_nothing_of_the_level_is_computed_while_the_store_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fakes.FakeServer().open(tmp_path / "s.db") as client:
        for name in ("largest_level", "exp_lower"):
            monkeypatch.setattr(f"frankly_sdk.policy.{name}", _never)
        assert client.answer(fakes.ANSWERS).status == "sent"


def _never(*_arguments: object) -> None:
    raise AssertionError("this is done once, at acceptance")


def test_the_command_line_shows_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer(make_survey({"q": ["no", "yes"]}))
    where = ("--link", server.link, "--store", str(tmp_path / "s.db"))
    assert (
        main(
            ["budget", *where, "--respondent", "house 1"], lambda chosen: server.open(chosen.store)
        )
        == 0
    )
    assert capsys.readouterr().out == (
        "Answering costs 1.0000 nats; 5.0000 of the 5 nats that this app allows you in all are left, 4.0000 after it.\n"
    )
    assert main(["explain", *where], lambda chosen: server.open(chosen.store)) == 0
    assert "4.0000 after it." in capsys.readouterr().out


def test_a_suite_may_name_final_surveys(tmp_path: Path) -> None:
    link = f"https://a.example/s/{'ab' * 16}"
    for surveys, status in ((["ab" * 16], 0), (["ab"], cli.BAD_INPUT), ("ab" * 16, cli.BAD_INPUT)):
        arguments = {
            "store": str(tmp_path / "device"),
            "link": link,
            "policy": {"final_surveys": surveys},
        }
        given, *others = (io.StringIO(text) for text in (json.dumps(arguments), "", ""))
        assert conformance.main(["init"], given, *others) == status


def test_the_samples_have_the_ceilings_these_tests_assume() -> None:
    assert ceiling(IDENTITY) is ceiling(LEAKY) is lip_block().ceiling is None
