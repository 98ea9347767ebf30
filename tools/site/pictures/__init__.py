# SPDX-License-Identifier: Apache-2.0
"""Every picture of the documentation that shows numbers or structure, drawn from the code itself.

python -m tools.site.pictures writes docs/pictures/*.svg; a test checks that they are what it would write.
"""

from collections.abc import Callable
from typing import Final

from tools.site.pictures import diagrams, plots

PICTURES: Final[dict[str, Callable[[], str]]] = {
    "one_answer": plots.one_answer,
    "margin": plots.margin,
    "frontier": plots.frontier,
    "lift": plots.lift,
    "architecture": diagrams.architecture,
    "data_flow": diagrams.data_flow,
}
"""File name without its ending → what draws it, as SVG text."""
