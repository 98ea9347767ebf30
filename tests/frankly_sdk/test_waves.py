# SPDX-License-Identifier: Apache-2.0
"""Waves on one device: the ledger keeps the total within the budget for any surveys."""

from fractions import Fraction
from math import prod
from pathlib import Path

import pytest
from frankly_protocol.audit import ceiling, exp_lower
from frankly_protocol.mechanisms import DenseMechanism
from frankly_sdk import BudgetExceeded, Policy
from frankly_sdk.store import Store

from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_sdk import fakes
from tests.frankly_sdk.drivers import driver  # noqa: F401


def wave(number: int, epsilon: str) -> fakes.FakeServer:
    document = survey(ldp_block(epsilon=epsilon), survey_id=f"{number:032x}")
    return fakes.FakeServer(document=document)


@pytest.mark.parametrize(
    ("levels", "answered"),
    [
        pytest.param(["0.06"] * 50, 50, id="equal split of 3 nats"),
        pytest.param(["0.5"] * 50, 6, id="a server that asks again and again"),
        pytest.param(["1.5", "1.5"] + ["1"] * 48, 2, id="a run of two waves, and more afterwards"),
        # Costs are 1 + 0.5 + …, so surveys that fit are still answered after a wave was refused.
        pytest.param(["2.9"] + ["0.5", "0.02"] * 24, 6, id="small waves after refused ones"),
    ],
)
@pytest.mark.usefixtures("driver")
def test_fifty_waves_never_exceed_the_budget(
    levels: list[str], answered: int, tmp_path: Path
) -> None:
    policy, store = Policy(cap="3"), tmp_path / "answers.db"
    charged: list[Fraction] = []
    for number, epsilon in enumerate(levels):
        server = wave(number, epsilon)
        before = len(server.posted)
        try:
            with server.open(store, policy=policy) as client:
                client.answer({"affair": "yes"})
        except BudgetExceeded:
            assert len(server.posted) == before
            continue
        mechanism = server.document.blocks[0].mechanism
        assert isinstance(mechanism, DenseMechanism)
        charged.append(ceiling(mechanism) or Fraction(0))
        # The test computes the exact ratio by which all symbols together can change the odds.
        assert prod(charged, start=Fraction(1)) <= exp_lower(Fraction(3))
    assert len(charged) == answered
    opened = Store(store)
    assert prod(charge.odds for charge in opened.spent()) == prod(charged)
    opened.close()
