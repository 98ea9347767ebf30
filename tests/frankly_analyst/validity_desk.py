# SPDX-License-Identifier: Apache-2.0
"""Survey with an item that shows who reads, on a real server, in which some people answer at random and some deny.

Answers and noise are drawn with a fixed seed, by the chances in the signed document.
"""

import random
from pathlib import Path
from typing import Any, Final

from frankly_protocol.documents import SurveyDocument

from tests.frankly_analyst.desk import BATCH
from tests.frankly_server.web.site import Site, make_site
from tests.survey_files import REGION, habits

_ITEM: Final = """\
instructed:
  id: attention
  text: {en: "To show that you read this, please choose “Often”."}
  choices:
    - {id: never, label: {en: Never}}
    - {id: rarely, label: {en: Rarely}}
    - {id: often, label: {en: Often}}
    - {id: always, label: {en: Always}}
  answer: often
"""
_BLOCK: Final = """\
  - id: {id}
    notion: ldp
    epsilon: "2"
    mechanism: grr
    questions:
      - id: {id}
        text: {{en: "{text}"}}
        choices: [{choices}]
"""


def _block(name: str, text: str, **choices: str) -> str:
    listed = ", ".join(f'{{id: "{one}", label: {{en: {said}}}}}' for one, said in choices.items())
    return _BLOCK.format(id=name, text=text, choices=listed)


SURVEY: Final = habits(
    _block("fined", "Were you fined for travelling without a ticket last year?", no="No", yes="Yes"),
    _block("travels", "How often do you travel by bus or train?", rarely="Rarely", weekly="Weekly", daily="Daily"),
    budget="4",
    strata=REGION + _ITEM,
).replace(b"title: {en: Habits}", b"title: {en: Travelling}")  # fmt: skip
RANDOM: Final = 0.25
"""Share of people who answer at random: every choice alike, except for `YES`."""
YES: Final = 0.1
"""Share of people who answer at random who choose "yes" at `fined`."""
FINED: Final = 0.2
DENY: Final = 0.2
"""Share of the people concerned who read, and choose "no"."""
TRAVELS: Final = (0.1, 0.3, 0.6)
TOLD: Final = (
    f"{FINED:.0%} of the people were fined, and {DENY:.0%} of those who read deny it; {TRAVELS[0]:.0%} rarely travel, "
    f"{TRAVELS[1]:.0%} weekly, {TRAVELS[2]:.0%} daily; {RANDOM:.0%} of the people do not read, and {YES:.0%} of these "
    "choose “Yes” at the first question."
)
"""The truth, as the notebook tells it."""


def filled(home: Path, n: int) -> Site:
    """Return a site with n reports."""
    site = make_site(home, f"sqlite:///{home / 'frankly.db'}", SURVEY)
    document = SurveyDocument.from_envelope(site.services.surveys.envelope(site.survey))
    draw = random.Random(7)
    reports = []
    for number in range(n):
        passes, answers = _person(draw)
        symbols: list[Any] = []
        for block, answer in zip(document.blocks, answers, strict=True):
            mechanism: Any = block.mechanism
            symbols.append(mechanism.symbol_json(mechanism.sample(answer, draw.getrandbits)))
        strata = {
            "region": "north" if number % 4 else "south",
            "attention": "passed" if passes else "failed",
        }
        reports.append(site.report(number, y=symbols, strata=strata))
    for start in range(0, n, BATCH):
        site.services.intake.accept_batch(site.survey, reports[start : start + BATCH])
    site.release(item="attention")
    return site


def _person(draw: random.Random) -> tuple[bool, tuple[int, int]]:
    """Return whether a person passes the item, and the positions of the answers that the person gives."""
    if draw.random() < RANDOM:
        return draw.random() < 0.25, (int(draw.random() < YES), draw.randrange(3))
    fined = draw.random() < FINED and draw.random() >= DENY
    return True, (int(fined), draw.choices(range(3), TRAVELS)[0])
