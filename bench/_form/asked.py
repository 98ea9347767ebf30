# SPDX-License-Identifier: Apache-2.0
"""How many questions a form asks: figures of designs, and those of an independent computation."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, log2

from frankly_protocol.mechanisms import AgreementMechanism
from frankly_server.design.form import FormRequest
from frankly_server.design.form.comparisons import one_question

from _form.designing import designed, even

WITHIN = 1.005
"""A best known value counts as reached if the difference is at most half a per cent."""


@dataclass(frozen=True)
class Figures:
    """Figures of a form at n = 1 and even shares.

    value : sum of the variances of all questions. one_question : the same if a single question is
    drawn and asked at the full level. mean, most : mean and largest number of questions asked.
    entropy : of the plan (the component and the parts drawn), in bits.
    """

    value: float
    one_question: float
    mean: float
    most: int
    entropy: float


@dataclass(frozen=True)
class Asked:
    """Figures of a form, the expected ones, and the names of those that miss them."""

    case: str
    figures: Figures
    expected: Figures
    missed: tuple[str, ...]
    holds: bool


FORMS = [
    ("10×5", [5] * 10, "1", Figures(1222.98, 1222.98, 1, 1, 3.3)),
    ("10×5", [5] * 10, "2", Figures(254.21, 254.21, 1, 1, 3.3)),
    ("10×5", [5] * 10, "4", Figures(86.02, 95.62, 2, 2, 5.5)),
    ("6×3", [3] * 6, "2", Figures(51.83, 51.83, 1, 1, 2.6)),
    ("15×2", [2] * 15, "2", Figures(148.73, 193.96, 2, 2, 6.7)),
    ("15×2", [2] * 15, "4", Figures(47.42, 121.05, 4, 4, 10.4)),
    ("5×2 + 5×5", [2] * 5 + [5] * 5, "3", Figures(72.94, 91.20, 1.68, 3, 3.6)),
    ("20×4", [4] * 20, "4", Figures(252.92, 346.45, 2, 2, 7.6)),
]
"""Name, choices of each question, ε and expected figures."""


def asked(name: str, sizes: Sequence[int], epsilon: str, expected: Figures) -> Asked:
    """Design a form and compare its figures with the expected ones."""
    design, _ = designed(even(sizes), epsilon)
    alone = one_question(FormRequest(tuple(even(sizes)), Fraction(epsilon)))
    # Values may have numbers of NumPy, which are no JSON values.
    figures = Figures(float(design.value), float(alone.value), *plans(design.mechanism))
    is_met = {
        "value": figures.value <= WITHIN * expected.value,
        # On both sides, because a weak comparison would flatter the design.
        "one_question": abs(figures.one_question / expected.one_question - 1) <= WITHIN - 1,
        "mean": round(figures.mean, 2) == expected.mean,
        "most": figures.most == expected.most,
        "entropy": round(figures.entropy, 1) == expected.entropy,
    }
    missed = tuple(name for name, met in is_met.items() if not met)
    return Asked(f"{name}, ε = {epsilon}", figures, expected, missed, not missed)


def plans(mechanism: AgreementMechanism) -> tuple[float, int, float]:
    """Return the mean and largest number of parts drawn, and the entropy of the plan in bits."""
    mean = entropy = 0.0
    for component in mechanism.components:
        chance = component.chance / (1 << mechanism.bits)
        draws = sum(log2(comb(len(pool.parts), pool.pick)) for pool in component.pools)
        mean += chance * len(component.slots)
        entropy += chance * (draws - log2(chance))
    return mean, max(len(component.slots) for component in mechanism.components), entropy
