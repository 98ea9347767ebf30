# SPDX-License-Identifier: Apache-2.0
"""The American National Election Study of 1996: 944 voters, from the statsmodels wheel (`datasets.anes96`).

Public domain. The secret is the vote that the person expected to cast; the survey does not ask for
it. It asks for three attributes together: political views, a degree, and how often the person
watches the news. 344 people are the public pilot; the other 600 answer.
"""

from collections.abc import Mapping

from examples.demo.people import Person, records, shuffled

SEED = 1996
PILOT = 344
VOTE = ("clinton", "dole")
VIEWS, DEGREE, NEWS = ("liberal", "moderate", "conservative"), ("no", "yes"), ("rarely", "often")


def people() -> list[Person]:
    """Return all 944 voters in the shuffled order."""
    return shuffled(
        [_person(row) for row in records("anes96", delimiter="\t", quotechar="'")], SEED
    )


def split() -> tuple[list[Person], list[Person]]:
    """Return (the public pilot of 344, the 600 respondents)."""
    everyone = people()
    return everyone[:PILOT], everyone[PILOT:]


def _person(row: Mapping[str, str]) -> Person:
    leaning = float(row["selfLR"])  # 1 extremely liberal … 4 moderate … 7 extremely conservative
    return {
        "vote": VOTE[int(float(row["vote"]))],
        "views": VIEWS[0 if leaning < 4 else 1 if leaning == 4 else 2],
        "degree": DEGREE[float(row["educ"]) >= 5],
        "news": NEWS[float(row["TVnews"]) >= 5],  # days a week
    }
