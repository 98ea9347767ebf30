# SPDX-License-Identifier: Apache-2.0
"""The Redbook survey of 1974 with all its items: 6,366 married women, as shipped inside the statsmodels wheel.

See `examples.affairs.data` for the source. No item needs a prior, so there is no pilot.
"""

from collections.abc import Mapping

from examples.affairs.data import CODES
from examples.demo.people import Person, records, shuffled

SEED = 1974

_RANGES: dict[str, dict[float, str]] = {
    "age": {17.5: "0_19", 22: "20_24", 27: "25_29", 32: "30_34", 37: "35_39", 42: "40_up"},
    "yrs_married": {
        0.5: "0",
        2.5: "1_4",
        6: "5_7",
        9: "8_10",
        13: "11_14",
        16.5: "15_19",
        23: "20_up",
    },
    "children": {0: "0", 1: "1", 2: "2", 3: "3", 4: "4", 5.5: "5_up"},
}
"""Question -> middle of a range, as in the data file -> choice id of that range."""
CODES_OF: dict[str, dict[float, str]] = {
    **CODES,
    **_RANGES,
    "religious": {1: "not", 2: "mildly", 3: "fairly", 4: "strongly"},
    "occupation_husb": CODES["occupation"],
}


def people() -> list[Person]:
    """Return all 6,366 women in the shuffled order."""
    return shuffled([_person(row) for row in records("fair")], SEED)


def split() -> tuple[list[Person], list[Person]]:
    """Return (no pilot, the 6,366 respondents)."""
    return [], people()


def _person(row: Mapping[str, str]) -> Person:
    coded = {question: names[float(row[question])] for question, names in CODES_OF.items()}
    return {"affair": "yes" if float(row["affairs"]) > 0 else "no", **coded}
