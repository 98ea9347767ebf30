# SPDX-License-Identifier: Apache-2.0
"""Covers for one target: intervals of its scores attain the optimum that the engine certifies."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from frankly_design.engine.engine import DesignRequest, design
from frankly_design.form import FormQuestion, FormRequest, design_form
from frankly_design.form.covers import optimum
from frankly_design.notions.prior import Prior
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, level_for


@pytest.mark.parametrize("seed", range(20))
def test_a_mean_or_contrast_alone_is_as_good_as_the_certified_optimum(seed: int) -> None:
    rng = Random(seed)
    answers = rng.randint(2, 9)
    prior = tuple(rng.randint(1, 9) for _ in range(answers))
    scores = tuple(Fraction(rng.randint(-6, 6), 2) for _ in range(answers))
    scores = scores if len(set(scores)) > 1 else tuple(map(Fraction, range(answers)))
    epsilon = Fraction(rng.choice(("0.3", "1", "2", "4")))
    form = design_form(FormRequest((FormQuestion(prior, (scores,)),), epsilon))
    block = design(
        DesignRequest(
            prior=Prior.from_rows([list(prior)]),
            claims=(Claim("ldp", level_for(epsilon)),),
            targets=(scores,),
            accept_unidentifiable=True,
        )
    )
    assert block.certified
    # The engine stops at a gap of a thousandth.
    assert form.value == pytest.approx(block.value, rel=1.5e-3)


@pytest.mark.slow
def test_a_cover_of_a_long_scale_is_uniform_and_small() -> None:
    scores = np.arange(64.0)[None, :]
    cover = optimum((1,) * 64, scores, 1.0, Limits())
    assert cover is not None
    covered = [
        sum(weight for mask, weight in cover.listed if mask >> x & 1) for x in range(cover.answers)
    ]
    assert len(set(covered)) == 1
    assert len(cover.listed) < 300
