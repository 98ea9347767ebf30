# SPDX-License-Identifier: Apache-2.0
"""What a correction by anchors costs in precision (docs/maths/validity.md), in words for planning."""

from collections.abc import Iterator
from math import ceil, isinf
from typing import Final

import numpy as np
from frankly_design.estimate.anchors import anchor_weights
from frankly_design.kinds.parts import form_of
from frankly_protocol.documents import SurveyDocument

from frankly_server.analysis.anchors import Anchor, anchors_of
from frankly_server.analysis.random_law import random_law
from frankly_server.surveys.live import text_of
from frankly_server.surveys.preview import Stated, WantedPlan, stated_of, wanted_plan

WARNED: Final = 1.5
"""Factor of the standard error above which a draft is warned of its anchors."""


def correction_factor(document: SurveyDocument, stated: Stated, plan: WantedPlan) -> float | None:
    """Return the largest standard error with correction, over that without, of a question's figure.

    The largest over all true shares, if nobody answers at random. It leaves out what reports with both a
    question and an anchor of the same form tell besides, and takes a ratio as linear: where these
    matter it was too large in every case tried, up to 1.4 times. None without anchors, for an anchor
    itself, where figures are not corrected or not estimated, and for answers that are sent without noise.
    """
    anchors = anchors_of(document, {})
    if not anchors or plan.plan is None or any(question.anchor for question in stated.questions):
        return None
    if len(stated.questions) > 1 and any(_in_one_form(stated, anchor) for anchor in anchors):
        return None
    law = random_law(document, stated.block.questions, {})
    if law is None:
        return None
    factor = plan.plan.corrected_factor(
        np.array([float(chance) for chance in law]), float(stated.share) * variance_of(anchors)
    )
    return None if isinf(factor) else factor


def variance_of(anchors: list[Anchor]) -> float:
    """Return the number of reports, times the variance of κ̂, if nobody answers at random."""
    weights = anchor_weights([one.score for one in anchors], [one.shown for one in anchors])
    return sum(
        weight**2 * anchor.score.variance(1.0) / anchor.shown
        for weight, anchor in zip(weights, anchors, strict=True)
    )


def _in_one_form(stated: Stated, anchor: Anchor) -> bool:
    form = form_of(stated.block.mechanism)
    return form is not None and form is anchor.form


def correction_in_words(document: SurveyDocument) -> Iterator[str]:
    """Yield what the correction by anchors costs, and a warning if that is much; nothing without anchors."""
    factors = {
        text_of(stated.questions, document, stated.arm): factor
        for stated in stated_of(document)
        if (factor := correction_factor(document, stated, wanted_plan(stated))) is not None
    }
    if not factors:
        return
    most = max(factors.values())
    yield (
        "Corrected for people who answer at random, a figure has a standard error up to about "
        f"{_up(most)} times that of the uncorrected one, even if nobody does: the same margin then takes "
        f"up to about {_up(most**2)} times as many people."
    )
    if most > WARNED:
        named = [f"“{text}” {_up(factor)}" for text, factor in factors.items() if factor > WARNED]
        others = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        yield (
            f"That is much ({', '.join(named[:_MOST_NAMED])}{others}). A yes/no anchor that nearly nobody or nearly "
            "everybody answers with yes costs least."
        )


_MOST_NAMED: Final = 4


def _up(factor: float) -> str:
    # rounding: up, so that no cost is understated.
    return f"{ceil(100 * factor - 1e-9) / 100:.2f}"
