# SPDX-License-Identifier: Apache-2.0
"""Cap and ledger: exact over all surveys of an install, and never renewed."""

from dataclasses import replace
from pathlib import Path

import pytest
from frankly_protocol.audit import ceiling, ln_up
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_sdk import BudgetExceeded, Policy, PolicyRefused

from tests.frankly_protocol.samples import ldp_block, lip_block, survey
from tests.frankly_sdk.fakes import FakeServer, backstop_block, payable_survey


def number(i: int, epsilon: str = "1") -> FakeServer:
    return FakeServer(document=survey(ldp_block(epsilon=epsilon), survey_id=f"{i:032x}"))


def test_three_surveys_at_one_fit_a_cap_of_three_and_a_fourth_does_not(tmp_path: Path) -> None:
    policy = Policy(cap="3")
    for i in range(3):
        with number(i).open(tmp_path / "s.db", policy=policy) as client:
            assert client.answer({"affair": "no"}).status == "sent"
    for i in range(3, 12):
        with pytest.raises(BudgetExceeded):
            number(i, "0.01").open(tmp_path / "s.db", policy=policy)


def test_a_survey_within_the_cap_at_opening_may_be_over_it_when_answered(tmp_path: Path) -> None:
    """Two clients are open at the same time; each answer checks the ledger again while it holds the lock."""
    policy = Policy(cap="1.5")
    with (
        number(1).open(tmp_path / "s.db", policy=policy) as first,
        number(2).open(tmp_path / "s.db", policy=policy) as second,
    ):
        assert first.answer({"affair": "no"}).status == "sent"
        with pytest.raises(BudgetExceeded):
            second.answer({"affair": "no"})


def test_an_answered_survey_opens_again_though_the_budget_is_spent(tmp_path: Path) -> None:
    server = number(1)
    with server.open(tmp_path / "s.db", policy=Policy(cap="1")) as client:
        client.answer({"affair": "no"})
    server.open(tmp_path / "s.db", policy=Policy(cap="1")).close()


CAPS = [
    (survey(ldp_block(epsilon="1")), "0.99", "cap"),
    (survey(ldp_block(epsilon="1"), lip_block(epsilon="0.5")), "1.99", "cap"),
    (survey(ldp_block(epsilon="1"), lip_block(epsilon="0.5")), "5", "final"),
    (survey(ldp_block(epsilon="1"), backstop_block()), "2.09", "final"),
    (survey(lip_block("a"), lip_block("b")), "60", "composition"),
]


@pytest.mark.parametrize(("document", "cap", "reason"), CAPS, ids=range(len(CAPS)))
def test_a_form_over_the_cap_is_refused_by_reason(document, cap, reason, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PolicyRefused) as caught:
        FakeServer(document=document).open(tmp_path / "s.db", policy=Policy(cap=cap))
    assert caught.value.reason == reason


def test_a_form_on_the_cap_is_accepted(tmp_path: Path) -> None:
    """ε-LIP counts as 2ε, so the form has 1 + 2 · 0.5 nats about the secret; the ledger charges the
    ceilings, 1 + ln 3 nats."""
    FakeServer().open(tmp_path / "s.db", policy=Policy(cap="2.0987")).close()
    final = Policy(cap="2", final_surveys=(payable_survey().survey,))
    FakeServer().open(tmp_path / "t.db", policy=final).close()


@pytest.mark.parametrize("name", ["cap", "max_ceiling"])
@pytest.mark.parametrize("value", ["nan", "0", "-1", "1e3", "five", " 1", True, 5.0, "64.01"])
def test_caps_are_plain_decimals(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Policy(**{name: value})  # type: ignore[arg-type]
    assert caught.value.field == name
    Policy(**{name: "64"})  # type: ignore[arg-type]


def test_there_is_always_a_cap() -> None:
    with pytest.raises(InvalidInput) as caught:
        Policy(cap=None)  # type: ignore[arg-type]
    assert caught.value.field == "cap"


def capped(nats: str) -> FakeServer:
    """Return a survey whose block was designed for a prior and has a ceiling of ln 3 (1.0986 nats)."""
    mechanism = DenseMechanism(4, ((12, 4), (4, 12)))
    block = replace(lip_block(), mechanism=mechanism, ceiling=ceiling(mechanism))
    assert ln_up(block.ceiling) == nats
    return FakeServer(document=survey(block))


@pytest.mark.parametrize(("max_ceiling", "accepted"), [("1.0987", True), ("1.0986", False)])
def test_a_ceiling_is_accepted_up_to_the_apps_own(
    max_ceiling: str, accepted: bool, tmp_path: Path
) -> None:
    policy = Policy(allow_unpinned=True, max_ceiling=max_ceiling)
    server = capped("1.0987")
    options = {"link": server.link.partition("#")[0], "policy": policy}
    if accepted:
        server.open(tmp_path / "s.db", **options).close()
        return
    with pytest.raises(PolicyRefused) as caught:
        server.open(tmp_path / "s.db", **options)
    assert (caught.value.reason, caught.value.field) == ("ceiling", "blocks[0].ceiling")
