# SPDX-License-Identifier: Apache-2.0
"""Gains of a report: value, slope and secants, compared with formulas and finite differences."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions.cones import Cone
from frankly_design.notions.prior import Prior
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Guessing, Information
from frankly_protocol.audit import Claim

from tests.frankly_design.maths import EVERY_NOTION, scaled_rays, tamed

CASES = [random.Random(seed) for seed in range(6)]


def base_of(rng: random.Random) -> tuple[ConeBase, Prior, np.ndarray]:
    prior, cone = tamed(rng.choice(EVERY_NOTION), rng)
    return ConeBase(cone, prior), prior, scaled_rays(cone, prior)


@pytest.mark.parametrize("rng", CASES)
def test_information_is_the_divergence_of_a_report(rng: random.Random) -> None:
    base, prior, V = base_of(rng)
    p = [n / prior.total for n in prior.shares]
    for v in V:
        # P(x|y) = p_x v_x, so a report's gain is the divergence of the posterior from the prior.
        posterior = [a * b for a, b in zip(p, v, strict=True)]
        expected = math.fsum(b * math.log(b / a) for a, b in zip(p, posterior, strict=True) if b)
        gain = Information(base)
        assert gain.values((v * base.scale)[None])[0] == pytest.approx(
            expected, rel=1e-12, abs=1e-14
        )
        assert np.sum(gain.terms(v * base.scale)) == pytest.approx(expected, rel=1e-12, abs=1e-14)
        assert expected <= -math.log(min(a for a in p if a)) + 1e-12
        assert Guessing(base).values((v * base.scale)[None])[0] == pytest.approx(
            max(posterior), rel=1e-12
        )


@pytest.mark.parametrize("rng", CASES)
def test_ceilings_are_the_gain_of_the_identity(rng: random.Random) -> None:
    base, prior, _ = base_of(rng)
    raw = np.diag(base.scale / prior.probabilities())  # one report for each answer, with v = 1/p
    for gain in (Information(base), Guessing(base)):
        assert prior.probabilities() @ gain.values(raw) == pytest.approx(gain.ceiling, rel=1e-12)


@pytest.mark.parametrize("rng", CASES)
def test_slopes_are_gradients(rng: random.Random) -> None:
    base, _, V = base_of(rng)
    for _ in range(10):
        shares = np.array([rng.expovariate(1) for _ in V])
        t = (shares / shares.sum()) @ V * base.scale
        for gain in (Information(base), Guessing(base)):
            step = 1e-6 * base.scale
            moved = np.array([[t + d, t - d] for d in np.diag(step)])
            differences = [
                (gain.values(up[None])[0] - gain.values(down[None])[0]) for up, down in moved
            ]
            np.testing.assert_allclose(gain.slope(t) * 2 * step, differences, rtol=1e-5, atol=1e-14)


@pytest.mark.parametrize("rng", CASES)
def test_tangents_stay_below(rng: random.Random) -> None:
    base, _, V = base_of(rng)
    T = V * base.scale
    for gain in (Information(base), Guessing(base)):
        for t in T:
            tangents = gain.values(t[None])[0] + (T - t) @ gain.slope(t)
            assert np.all(tangents <= gain.values(T) + 1e-9)


@pytest.mark.parametrize("rng", CASES)
def test_secants_lie_above_on_their_box(rng: random.Random) -> None:
    base, prior, _ = base_of(rng)
    gain, p = Information(base), prior.probabilities()
    for trial in range(20):
        ends = np.sort(np.array([[rng.random() * h for h in base.high] for _ in range(2)]), axis=0)
        low, high = ends if trial else (np.zeros(4), base.high)
        slope, constant = gain.secant(low, high)
        for share in np.linspace(0, 1, 21):
            t = low + share * (high - low)
            v = t / base.scale
            terms = np.where(v > 0, p * v * np.log(np.where(v > 0, v, 1.0)), 0.0)
            above = slope * t + constant - terms
            assert np.all(above >= -1e-12)
            if share in (0.0, 1.0):
                np.testing.assert_allclose(above, 0, atol=1e-12)


def test_secants_of_slivers_and_points_are_finite_and_above() -> None:
    base, _, _ = base_of(random.Random(9))
    gain = Information(base)
    for width in (0.0, 1e-16, 1e-14, 1e-12):
        low = 0.3 * base.high
        slope, constant = gain.secant(low, low + width)
        assert np.all(np.isfinite(slope))
        for t in (low, low + width / 2, low + width):
            assert np.all(slope * t + constant >= gain.terms(t) - 1e-12)


def test_answers_without_mass_have_no_gain() -> None:
    prior = Prior.from_rows([[3, 0, 4]])
    base = ConeBase(Cone((Claim("ldp", (3, 1)),), 3), prior)
    gain = Information(base)
    first, second = base.scale * [1, 1, 1], base.scale * [1, 2, 1]
    assert gain.values(first[None])[0] == gain.values(second[None])[0] == 0
    assert gain.slope(first)[1] == 0
    assert Guessing(base).slope(base.scale * [1, 3, 1]).tolist()[1] == 0
    assert gain.ceiling == pytest.approx(
        -sum(float(n * math.log(n)) for n in (Fraction(3, 7), Fraction(4, 7)))
    )
