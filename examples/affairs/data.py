# SPDX-License-Identifier: Apache-2.0
"""The Redbook survey of 1974: 6,366 married women, as shipped inside the statsmodels wheel (`datasets.fair`).

R. C. Fair, "A Theory of Extramarital Affairs", Journal of Political Economy 86(1), 1978. Real
answers of real people, in the public domain. The file is sorted, with all affairs first, so it is
shuffled with a fixed seed and split into a public pilot, from which the priors are counted, and the
respondents of the demo.
"""

from collections.abc import Mapping

from examples.demo.people import Person, counts, records, shuffled

__all__ = ["PILOT", "Person", "counts", "people", "split"]

SEED = 1974
PILOT = 1500

CODES: dict[str, dict[float, str]] = {
    "occupation": {
        1: "student",
        2: "unskilled",
        3: "clerical",
        4: "teacher-nurse",
        5: "managerial",
        6: "professional",
    },
    "rate_marriage": {1: "very-poor", 2: "poor", 3: "fair", 4: "good", 5: "very-good"},
    "educ": {
        9: "grade-school",
        12: "high-school",
        14: "some-college",
        16: "college",
        17: "some-graduate",
        20: "advanced",
    },
}


def people() -> list[Person]:
    """Return all 6,366 women in the shuffled order."""
    return shuffled([_person(row) for row in records("fair")], SEED)


def split() -> tuple[list[Person], list[Person]]:
    """Return (the public pilot of 1,500, the 4,866 respondents)."""
    everyone = people()
    return everyone[:PILOT], everyone[PILOT:]


def _person(row: Mapping[str, str]) -> Person:
    coded = {question: names[float(row[question])] for question, names in CODES.items()}
    return {"affair": "yes" if float(row["affairs"]) > 0 else "no", **coded}
