# SPDX-License-Identifier: Apache-2.0
"""Regret of a design prior when all answers turn out equally common."""

from fractions import Fraction

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.engine import regret as module
from frankly_design.engine.regret import LEAST_RATIO, PEERS, Regret, in_words, regret
from frankly_design.families import FAMILIES, FamilyRequest
from frankly_design.notions import promises
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.prior import Prior
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import require_private
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from tests.frankly_design.maths import exact_variance


def zipf(answers: int, power: int = 1) -> Prior:
    return Prior.from_rows([[10**6 // (x + 1) ** power for x in range(answers)]])


def mostly_one(answers: int, percent: int) -> Prior:
    return Prior.from_rows([[percent * (answers - 1)] + [100 - percent] * (answers - 1)])


def regret_of(prior: Prior, epsilon: str, mechanism: str = "optimal") -> Regret | None:
    designed = design(DesignRequest(prior, (answer_ldp(Fraction(epsilon)),), mechanism))
    return regret(designed.mechanism, designed.claims, designed.decoder_prior)


@pytest.mark.parametrize(
    ("prior", "epsilon", "ratio"),
    [
        (zipf(8, 2), "2", 1.238),
        (mostly_one(4, 90), "1", 1.097),
        (mostly_one(8, 90), "1", 1.200),
        (mostly_one(8, 99), "2", 1.430),
        (mostly_one(4, 99), "4", 1.363),
        (mostly_one(8, 99), "4", 1.948),
    ],
)
def test_the_regret_of_skewed_priors(prior: Prior, epsilon: str, ratio: float) -> None:
    """The expected ratios were computed independently, from tables and closed forms."""
    cost = regret_of(prior, epsilon)
    assert cost is not None
    assert cost.ratio == pytest.approx(ratio, abs=6e-4)
    assert cost.against == "subset-selection"


@pytest.mark.parametrize("answers", [2, 4, 16])
def test_equal_shares_cost_nothing(answers: int) -> None:
    assert regret_of(Prior.from_rows([[1] * answers]), "1") is None
    assert regret_of(zipf(8), "1") is None  # 1.3% is below the smallest reported ratio


def test_a_suboptimal_family_has_a_regret() -> None:
    """The test compares GRR for 16 answers at ε = 1 with the best subset mechanism, both in closed form."""
    cost = regret_of(Prior.from_rows([[1] * 16]), "1", "grr")
    assert cost is not None

    def by_size(k: int) -> float:
        e, a = float(np.exp(1)), 16
        p, q = k * e / (k * e + a - k), 0.0
        q = (k - p) / (a - 1)
        inside = q + (p - q) / a
        return a * inside * (1 - inside) / (p - q) ** 2

    assert cost.ratio == pytest.approx(by_size(1) / min(map(by_size, range(1, 16))), rel=1e-6)


def test_peers_keep_the_claims_and_none_beats_the_stated_regret() -> None:
    prior = Prior.from_rows([[40, 110, 210, 140], [90, 80, 60, 20]])
    claims = (promises.promise("lip", prior, Fraction("0.25")), answer_ldp(Fraction(3)))
    designed = design(DesignRequest(prior, claims))
    cost = regret(designed.mechanism, designed.claims, designed.decoder_prior)
    assert cost is not None
    assert cost.against == "the optimum for equal shares"
    even = (1, 1, 1, 1)
    own_variance = exact_variance(designed.table, prior.shares, even)
    best = design(DesignRequest(Prior.from_rows([even]), claims))
    assert cost.ratio == pytest.approx(
        own_variance / exact_variance(best.table, even, even), rel=1e-6
    )
    for name, peer in module._peers(claims, 4, module._Timed(Limits())):
        require_private(peer, *claims)
        assert name in (*PEERS, cost.against)


def test_a_family_that_refuses_the_claims_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = (answer_ldp(Fraction("1.25")),)
    designed = design(DesignRequest(mostly_one(8, 99), claims))

    def refuses(family: FamilyRequest) -> object:
        raise InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, "not this", "mechanism")

    for name in PEERS[1:]:
        monkeypatch.setitem(FAMILIES, name, refuses)
    cost = regret(designed.mechanism, designed.claims, designed.decoder_prior)
    assert cost is None or cost.against == "grr"
    monkeypatch.setitem(FAMILIES, "grr", refuses)
    module._peers.cache_clear()
    module._regret.cache_clear()
    assert regret(designed.mechanism, designed.claims, designed.decoder_prior) is None
    module._peers.cache_clear()
    module._regret.cache_clear()


def test_targets_that_cannot_be_estimated_have_no_regret() -> None:
    prior = Prior.from_rows([[30, 10, 20], [10, 30, 20]])
    claims = (promises.promise("lip", prior, Fraction("0.25")),)
    request = DesignRequest(prior, claims, "watchdog", accept_unidentifiable=True)
    designed = design(request)
    assert not designed.identifiable
    assert regret(designed.mechanism, designed.claims, designed.decoder_prior) is None


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.2384, "if all choices are equally common, this needs 24% more reports than grr"),
        (1.0201, "if all choices are equally common, this needs 2% more reports than grr"),
        (14.76, "if all choices are equally common, this needs 14.8 times as many reports as grr"),
    ],
)
def test_words(ratio: float, words: str) -> None:
    cost = Regret(ratio, "grr")
    assert str(cost) == words == in_words(cost.to_json())
    assert ratio > LEAST_RATIO
