# SPDX-License-Identifier: Apache-2.0
"""Cap on δ: 0 by default, over all surveys of an install, in exact arithmetic."""

import io
import json
from fractions import Fraction
from pathlib import Path

import pytest
from frankly_protocol.audit import chance_up, parse_chance, report_level
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.promised import cost
from frankly_sdk import BudgetExceeded, Policy, PolicyRefused, cli, conformance
from frankly_sdk.store import Store

from tests.frankly_protocol.samples import dp_block, ldp_block, survey
from tests.frankly_sdk.fakes import BAD_DELTA_CAPS, FakeServer, times

UNIT = Fraction(1, 1 << 20)
"""The δ of the blocks here: a power of two, which tables represent exactly."""


def server(i: int, *blocks: Block) -> FakeServer:
    document: SurveyDocument = survey(*blocks, survey_id=f"{i:032x}")
    document.require_private()
    return FakeServer(document=document)


def test_without_a_cap_on_delta_such_a_block_counts_its_ceiling(tmp_path: Path) -> None:
    with pytest.raises(PolicyRefused) as caught:
        server(1, dp_block("q")).open(tmp_path / "s.db", policy=Policy(cap="64"))
    assert caught.value.code == "policy_cap"
    assert "inf nats" in caught.value.detail
    assert f"need a δ of {chance_up(UNIT)}" in caught.value.detail
    assert "this app allows 0)" in caught.value.detail


@pytest.mark.parametrize(
    ("cap", "accepted"), [("0.00000095367431640625", True), ("0.00000095367431640624", False)]
)
def test_the_cap_is_exact(cap: str, accepted: bool, tmp_path: Path) -> None:
    survey_server, policy = server(1, dp_block("q")), Policy(cap="2", delta_cap=cap)
    assert (Fraction(cap) >= UNIT) == accepted
    if not accepted:
        with pytest.raises(PolicyRefused):
            survey_server.open(tmp_path / "s.db", policy=policy)
        return
    with survey_server.open(tmp_path / "s.db", policy=policy) as client:
        explanation = client.survey.explain()
        assert (explanation.form_nats, explanation.form_delta) == ("1.0001", UNIT)
        assert "A chance of at most 0.001% may come on top" in explanation.words
        assert client.answer({"q": "yes"}).status == "sent"


def test_delta_adds_over_surveys_and_starts_and_never_renews(tmp_path: Path) -> None:
    """With a cap of three times δ, three answers at ε = 1 fit; then no answer that needs a δ fits,
    but others do."""
    policy = Policy(cap="5", delta_cap=times(3))
    for i in range(3):
        with server(i, dp_block("q")).open(tmp_path / "s.db", policy=policy) as client:
            assert client.answer({"q": "no"}).status == "sent"
    for i in range(3, 6):
        with pytest.raises(BudgetExceeded) as caught:
            server(i, dp_block("q")).open(tmp_path / "s.db", policy=policy)
        assert "inf nats" in caught.value.detail
    with server(9, ldp_block(epsilon="1")).open(tmp_path / "s.db", policy=policy) as client:
        assert client.answer({"affair": "no"}).status == "sent"
    with pytest.raises(BudgetExceeded):
        server(10, ldp_block(epsilon="1")).open(tmp_path / "s.db", policy=policy)
    store = Store(tmp_path / "s.db")
    assert sum(charge.delta for charge in store.spent()) == 3 * UNIT
    store.close()
    with pytest.raises(BudgetExceeded):  # the amount spent exceeds the lowered cap
        server(11, ldp_block(epsilon="0.1")).open(tmp_path / "s.db", policy=Policy(cap="5"))


def test_within_a_form_deltas_add_too(tmp_path: Path) -> None:
    both = server(1, dp_block("p"), dp_block("q"))
    once, twice = (Policy(cap="3", delta_cap=times(n)) for n in (1, 2))
    with pytest.raises(PolicyRefused):
        both.open(tmp_path / "s.db", policy=once)
    both.open(tmp_path / "s.db", policy=twice).close()


def test_the_ledger_is_checked_again_under_the_lock(tmp_path: Path) -> None:
    policy = Policy(cap="5", delta_cap=times(1))
    with (
        server(1, dp_block("q")).open(tmp_path / "s.db", policy=policy) as first,
        server(2, dp_block("q")).open(tmp_path / "s.db", policy=policy) as second,
    ):
        assert first.answer({"q": "no"}).status == "sent"
        with pytest.raises(BudgetExceeded):
            second.answer({"q": "no"})


def test_a_suite_may_set_it(tmp_path: Path) -> None:
    link = f"https://a.example/s/{'ab' * 16}"
    for cap, status in (("0.000001", 0), ("1", cli.BAD_INPUT)):
        arguments = {"store": str(tmp_path / "device"), "link": link, "policy": {"delta_cap": cap}}
        given, *others = (io.StringIO(text) for text in (json.dumps(arguments), "", ""))
        assert conformance.main(["init"], given, *others) == status


@pytest.mark.parametrize("value", BAD_DELTA_CAPS)
def test_caps_on_delta_are_plain_decimals_below_one(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Policy(delta_cap=value)  # type: ignore[arg-type]
    assert caught.value.field == "delta_cap"
    assert "nats" not in caught.value.detail


@pytest.mark.parametrize("text", ["0", "0.000001", "0.999999999999"])
def test_chances_are_read_exactly_and_never_shown_smaller(text: str) -> None:
    chance = parse_chance(text, "x")
    assert chance == Fraction(text)
    assert chance <= Fraction(chance_up(chance)) <= chance * Fraction(101, 100)
    assert "e" not in chance_up(chance / 10**9 + Fraction(1, 3 * 10**12)).lower()


def test_a_cost_without_delta_does_not_mention_delta() -> None:
    plain, with_delta = (survey(block) for block in (ldp_block(), dp_block()))
    assert "δ" not in cost(plain.report_level, None, Texts("en", "whole"))
    level = report_level(with_delta, Fraction(1, 2))
    assert level.cost.delta
    assert "δ that the app allows" in cost(level, None, Texts("en", "whole"))
