# SPDX-License-Identifier: Apache-2.0
"""The RAND Health Insurance Experiment, as shipped inside the statsmodels wheel (`datasets.randhie`).

Yearly records of families in six places of the USA, 1974 to 1982; public domain. Of 20,190 records,
the demo uses the 19,138 that state whether there is a physical limitation (in the others, this
value was imputed as a share). A record is a person in one year; here each record counts as one
employee. 1,000 of them are the public pilot; 3,000 answer.
"""

from collections.abc import Mapping

from examples.demo.people import Person, records, shuffled

SEED = 1974
PILOT, RESPONDENTS = 1000, 3000
LIMITATION = ("no", "yes")
HEALTH = ("excellent", "good", "fair", "poor")
VISITS = ("none", "one-two", "three-five", "more")


def people() -> list[Person]:
    """Return all 19,138 records in the shuffled order."""
    complete = [row for row in records("randhie") if float(row["physlm"]) in (0.0, 1.0)]
    return shuffled([_person(row) for row in complete], SEED)


def split() -> tuple[list[Person], list[Person]]:
    """Return (the public pilot of 1,000, the 3,000 respondents)."""
    everyone = people()
    return everyone[:PILOT], everyone[PILOT : PILOT + RESPONDENTS]


def _person(row: Mapping[str, str]) -> Person:
    rated = [bool(float(row[column])) for column in ("hlthg", "hlthf", "hlthp")]
    visits = int(row["mdvis"])
    return {
        "limitation": LIMITATION[int(float(row["physlm"]))],
        "health": HEALTH[rated.index(True) + 1 if any(rated) else 0],
        "visits": VISITS[0 if visits == 0 else 1 if visits <= 2 else 2 if visits <= 5 else 3],
    }
