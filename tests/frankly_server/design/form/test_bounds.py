# SPDX-License-Identifier: Apache-2.0
"""Lower bounds of forms lie below the joint optimum, gain curves above all posteriors."""

from fractions import Fraction
from itertools import product
from math import log
from random import Random

import numpy as np
import pytest
from frankly_protocol.audit import Claim, level_for
from frankly_server.design.api.engine import DesignRequest, design
from frankly_server.design.form import FormQuestion, FormRequest, design_form
from frankly_server.design.form.bounds import _GainCurve, _hull, lower_bound
from frankly_server.design.form.request import shares_of
from frankly_server.design.notions.prior import Prior


def asked(rng: Random, choices: int) -> FormQuestion:
    """A question with a random prior and target; its importance is a square number."""
    prior = tuple(rng.choice(((1,) * choices, [rng.randint(1, 5) for _ in range(choices)])))
    wanted = rng.choice(("shares", "mean", "distribution", "contrast"))
    scores = None
    if wanted in ("mean", "contrast"):
        scores = tuple(Fraction(i * rng.choice((1, 2)) - rng.randint(0, 1)) for i in range(choices))
        scores = scores if len(set(scores)) > 1 else tuple(map(Fraction, range(choices)))
    return FormQuestion(prior, wanted, scores, Fraction(rng.choice((1, 4))))


def joint_optimum(questions: tuple[FormQuestion, ...], level: tuple[int, int]) -> float:
    """The certified bound on the value of all mechanisms of the joint answers."""
    answers = list(product(*(range(question.choices) for question in questions)))
    prior = [
        int(np.prod([q.prior[x] for q, x in zip(questions, answer, strict=True)]))
        for answer in answers
    ]
    targets = tuple(
        tuple(row[answer[i]] * round(float(question.importance) ** 0.5) for answer in answers)
        for i, question in enumerate(questions)
        for row in question.targets
    )
    request = DesignRequest(
        prior=Prior.from_rows([prior]),
        claims=(Claim("ldp", level),),
        targets=targets,
        accept_unidentifiable=True,
    )
    bound = design(request).bound
    assert bound is not None
    return bound


@pytest.mark.parametrize("seed", range(12))
def test_a_bound_is_below_the_optimum_of_the_joint_alphabet(seed: int) -> None:
    rng = Random(seed)
    questions = tuple(asked(rng, rng.choice((2, 3))) for _ in range(2))
    epsilon = Fraction(rng.choice(("0.5", "1", "2", "4")))
    found = design_form(FormRequest(questions, epsilon))
    optimum = joint_optimum(questions, level_for(epsilon))
    assert 0 < found.bound <= optimum * (1 + 1e-6)
    assert optimum <= found.value * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_no_posterior_is_above_its_curve(seed: int) -> None:
    """Random posteriors, some with two likelihood ratios only, projected on the centred targets."""
    rng = Random(seed)
    question = asked(rng, rng.randint(2, 7))
    curve = _GainCurve.of(question, 7.0)
    p = shares_of(question.prior)
    targets = np.array([[float(v) for v in row] for row in question.targets])
    centred = (targets - (targets @ p)[:, None]) * np.sqrt(p)
    basis = np.linalg.svd(centred)[2][: np.linalg.matrix_rank(centred)]
    generator = np.random.default_rng(seed)
    for _ in range(300):
        sharp = generator.choice([0.2, 1.0, 5.0])
        posterior = p * np.exp(sharp * generator.normal(size=len(p)))
        if generator.random() < 0.5:
            posterior = p * np.where(
                generator.random(len(p)) < 0.5, 1.0, generator.choice([1.5, 7.0, 500.0])
            )
        posterior /= posterior.sum()
        gained = float(((basis @ ((posterior / p - 1) * np.sqrt(p))) ** 2).sum())
        entropy = float(posterior @ np.log(np.maximum(posterior / p, 1e-300)))
        assert gained <= np.interp(entropy, curve.entropies, curve.squares) + 1e-9
        if float((posterior / p).max() / (posterior / p).min()) <= 7:
            assert gained <= curve.alone + 1e-9


def test_the_hull_is_concave_and_above_its_points() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random(200), rng.random(200)
    corners, heights = _hull(x, y)
    assert np.all(np.interp(x, corners, heights) >= y - 1e-12)
    assert np.all(np.diff(np.diff(heights)[1:] / np.diff(corners)[1:]) <= 1e-9)


def test_a_yes_or_no_alone_has_its_optimum_as_the_bound() -> None:
    """Randomised response: the two shares together have the variance (E+1)²/(2(E−1)²)."""
    for epsilon in ("0.5", "1", "3"):
        question = FormQuestion((1, 1))
        level = level_for(Fraction(epsilon))
        ratio = level[0] / level[1]
        value = (ratio + 1) ** 2 / (2 * (ratio - 1) ** 2)
        found = lower_bound(FormRequest((question,), Fraction(epsilon)), ratio, (value,))
        assert found == pytest.approx(value, rel=1e-6)
        assert log(ratio) == pytest.approx(float(epsilon))


@pytest.mark.parametrize("sizes", [(2, 2, 2), (5, 2), (3, 3), (4, 4), (2, 2, 2, 2)])
@pytest.mark.parametrize("epsilon", ["1", "2", "4"])
def test_forms_of_few_joint_answers_are_certified(sizes: tuple[int, ...], epsilon: str) -> None:
    """The bound over all mechanisms of the joint answers is within 0.1% of the form's value."""
    questions = tuple(FormQuestion((1,) * choices) for choices in sizes)
    found = design_form(FormRequest(questions, Fraction(epsilon)))
    assert 0 <= found.excess < 1e-3


@pytest.mark.parametrize(
    ("epsilon", "excess"), [("1", 0.035), ("2", 0.02), ("4", 0.07), ("6", 0.05)]
)
def test_fifteen_yes_or_no_are_close_to_their_bound(epsilon: str, excess: float) -> None:
    """Without tails they would be up to 16, 23, 31 and 23% above it."""
    found = design_form(FormRequest((FormQuestion((1, 1)),) * 15, Fraction(epsilon)))
    assert 0 <= found.excess < excess
