# SPDX-License-Identifier: Apache-2.0
"""Forms: their variance beside that of known methods, and how many questions they ask.

The expected figures are those of an independent computation.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import comb, log2

from frankly_design.form import FormQuestion, FormRequest
from frankly_design.form.comparisons import few_questions, one_question, separate_blocks
from frankly_protocol.mechanisms import AgreementMechanism

from _form.designing import designed, even

WITHIN = 1.005
"""A best known value counts as reached if the difference is at most half a per cent."""


@dataclass(frozen=True)
class Figures:
    """Figures of a form at n = 1 and the shares of its prior; None where nothing is expected.

    value : sum of the variances of all questions. few_questions : the same for the best known method.
    one_question : if a single question is drawn and asked at the full level. separate_blocks : with a
    block for each question. bound : of all mechanisms of the level. mean, most : mean and largest
    number of questions asked. entropy : of the plan (the component and the parts drawn), in bits.
    """

    value: float | None
    few_questions: float | None
    one_question: float | None
    separate_blocks: float | None
    bound: float | None
    mean: float | None
    most: int | None
    entropy: float | None


@dataclass(frozen=True)
class Asked:
    """Figures of a form, the expected ones, and the names of those that miss them."""

    case: str
    figures: Figures
    expected: Figures
    missed: tuple[str, ...]
    holds: bool


def mixed() -> list[FormQuestion]:
    """Return two means of 5 points, two distributions of 7 and the shares of two skewed questions."""
    mean = (tuple(map(Fraction, range(-2, 3))),)
    up_to = tuple(tuple(Fraction(int(x <= last)) for x in range(7)) for last in range(6))
    return [
        *[FormQuestion((1, 2, 3, 2, 1), mean, Fraction(1, 16))] * 2,
        *[FormQuestion((1,) * 7, up_to)] * 2,
        *[FormQuestion((8, 1, 1))] * 2,
    ]


def uneven(number: int) -> list[FormQuestion]:
    """Return yes/no questions that expect 30, 31, … per cent."""
    return [FormQuestion((30 + i, 70 - i)) for i in range(number)]


_NOTHING = Figures(None, None, None, None, None, None, None, None)
FORMS: list[tuple[str, list[FormQuestion], str, Figures]] = [
    ("10×5", even([5] * 10), "1", Figures(1222.98, 1222.98, 1222.98, 13090, None, 1, 1, 3.3)),
    ("10×5", even([5] * 10), "2", Figures(254.21, 254.21, 254.21, 3223, None, 1, 1, 3.3)),
    ("10×5", even([5] * 10), "4", Figures(86.02, 86.02, 95.62, 789, None, 2, 2, 5.5)),
    ("6×3", even([3] * 6), "2", Figures(51.83, 51.83, 51.83, 295, None, 1, 1, 2.6)),
    ("15×2", even([2] * 15), "2", Figures(148.73, 148.73, 193.96, 1693, None, 2, 2, 6.7)),
    ("15×2", even([2] * 15), "4", Figures(47.42, 47.42, 121.05, 427, None, 4, 4, 10.4)),
    ("15×2", even([2] * 15), "6", Figures(24.465, 24.465, 114, 193, None, 15, 15, None)),
    (
        "5×2 + 5×5",
        even([2] * 5 + [5] * 5),
        "3",
        Figures(72.94, 72.94, 91.20, 644, None, 1.68, 3, 3.6),
    ),
    ("20×4", even([4] * 20), "4", Figures(252.92, 252.92, 346.45, 4530, None, 2, 2, 7.6)),
    ("mixed", mixed(), "3", _NOTHING),
    ("20×2, 30 to 49 %", uneven(20), "4", _NOTHING),
    ("30×2, 30 to 59 %", uneven(30), "4", _NOTHING),
]
"""Name, questions, ε and expected figures."""


def asked(name: str, questions: Sequence[FormQuestion], epsilon: str, expected: Figures) -> Asked:
    """Design a form and compare its figures with the expected ones."""
    design, _ = designed(questions, epsilon)
    request = FormRequest(tuple(questions), Fraction(epsilon))
    # Values may have numbers of NumPy, which are no JSON values.
    figures = Figures(
        float(design.value),
        float(few_questions(request).value),
        float(one_question(request).value),
        float(separate_blocks(request).value),
        float(design.bound),
        *plans(design.mechanism),
    )
    got, wanted = asdict(figures), asdict(expected)
    is_met = {key: value is None or _is_met(key, got[key], value) for key, value in wanted.items()}
    missed = tuple(name for name, met in is_met.items() if not met)
    return Asked(f"{name}, ε = {epsilon}", figures, expected, missed, not missed)


def _is_met(name: str, got: float, expected: float) -> bool:
    if name == "value":
        return got <= WITHIN * expected
    if name in ("mean", "most"):
        return round(got, 2) == expected
    if name == "entropy":
        return round(got, 1) == expected
    # On both sides, because a weak comparison would flatter the design.
    return abs(got / expected - 1) <= WITHIN - 1


def plans(mechanism: AgreementMechanism) -> tuple[float, int, float]:
    """Return the mean and largest number of parts drawn, and the entropy of the plan in bits."""
    mean = entropy = 0.0
    for component in mechanism.components:
        chance = component.chance / (1 << mechanism.bits)
        draws = sum(log2(comb(len(pool.parts), pool.pick)) for pool in component.pools)
        mean += chance * len(component.slots)
        entropy += chance * (draws - log2(chance))
    return mean, max(len(component.slots) for component in mechanism.components), entropy
