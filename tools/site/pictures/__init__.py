# SPDX-License-Identifier: Apache-2.0
"""The documentation's plots and diagrams, drawn by code.

python -m tools.site.pictures writes docs/pictures/*.svg; a test checks that they are up to date.
"""

from collections.abc import Callable
from typing import Final

from tools.site.pictures import concepts, diagrams, plots

PICTURES: Final[dict[str, Callable[[], str]]] = {
    "one_answer": plots.one_answer,
    "margin": plots.margin,
    "frontier": plots.frontier,
    "lift": plots.lift,
    "architecture": diagrams.architecture,
    "data_flow": diagrams.data_flow,
    "asking": diagrams.asking,
    "concept_coin": concepts.coin,
    "concept_hundred": concepts.hundred,
    "concept_crowd": concepts.crowd,
    "concept_people": concepts.people,
    "concept_who_sees": concepts.who_sees,
    "concept_checks": concepts.checks,
}
"""File name without suffix → function that returns the SVG text."""
