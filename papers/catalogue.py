# SPDX-License-Identifier: Apache-2.0
"""Every figure that can be reproduced, by id."""

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from papers import (
    ball_product,
    funnel_families,
    funnel_optima,
    lift_averages,
    lift_histogram,
    lift_responses,
    lift_watchdog,
    robust_table,
    robust_trust,
    robust_utility,
    thesis,
    thesis_formulas,
)
from papers.figure import Figure

FIGURES: dict[str, Figure] = {
    figure.id: figure
    for module in (
        funnel_optima,
        funnel_families,
        robust_utility,
        robust_trust,
        robust_table,
        ball_product,
        lift_histogram,
        lift_watchdog,
        lift_responses,
        lift_averages,
        thesis,
        thesis_formulas,
    )
    for figure in module.FIGURES
}


def chosen(name: str) -> list[Figure]:
    """Return the figure with the id `name`, or all of them for `all`. Raises InvalidInput(usage) for another name."""
    if name == "all":
        return list(FIGURES.values())
    if name not in FIGURES:
        message = f"there is no such figure: give all, or one of {', '.join(FIGURES)}"
        raise InvalidInput(Problem.USAGE, message, "FIGURE")
    return [FIGURES[name]]
