# SPDX-License-Identifier: Apache-2.0
"""Surveys whose score tables have rows of every kind: versions, arms, sets, scales, missing public answers."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

from frankly_protocol.documents import SurveyDocument
from frankly_server.surveys.definition import parse_definition

from tests.contract.test_arms import FILE as ARMS
from tests.frankly_server.web.site import Site, make_site
from tests.survey_files import SMOKES, habits

_MOOD: Final = """\
  - id: mood
    notion: ldp
    epsilon: "1.5"
    mechanism: grr
    questions:
      - id: mood-today
        text: {en: "How are you?"}
        choices:
          - {id: bad, label: {en: Bad}, score: -1}
          - {id: well, label: {en: Well}, score: 2.5}
          - {id: none, label: {en: No answer}, role: no_answer}
"""
_PETS: Final = """\
  - id: pets
    notion: ldp
    epsilon: "2"
    mechanism: oue
    questions:
      - id: pets
        text: {en: "Which pet?"}
        choices:
          - {id: "1", label: {en: Cat}}
          - {id: "2", label: {en: Dog}}
          - {id: other, label: {en: Other}}
          - {id: none, label: {en: None}}
"""
_PUBLIC: Final = """\
strata:
  - id: region
    text: {en: "Where do you live?"}
    choices: [{id: north, label: {en: North}}, {id: south, label: {en: South}}, {id: west, label: {en: West}}]
  - id: age-group
    text: {en: "How old are you?"}
    choices: [{id: young, label: {en: Young}}, {id: old, label: {en: Old}}]
"""
VERSIONS: Final = habits(SMOKES, _MOOD, _PETS, budget="5", strata=_PUBLIC)
REPORTS: Final = 400
_BATCH: Final = 200


def two_versions(home: Path) -> Site:
    """Return a site with reports on two versions with other mechanisms; few people are from the west."""
    site, numbers = _site(home, VERSIONS), count()
    _answer(site, site.services.surveys.versions(site.survey)[-1], numbers)
    changed = VERSIONS.replace(b'epsilon: "1"', b'epsilon: "0.5"')
    site.services.surveys.apply(parse_definition(changed))
    site.services.surveys.publish("habits")
    _answer(site, site.services.surveys.versions(site.survey)[-1], numbers)
    site.release()
    return site


def arms(home: Path) -> Site:
    """Return a site with reports of the arms that protect a question, and of one that asks in the clear."""
    site = _site(home, ARMS.replace(b"name: split", b"name: habits", 1))
    (document,) = site.services.surveys.versions(site.survey)
    for arm in ("clear", "weak", "strong"):
        _answer(site, document, count(ord(arm[0]) * 1000), arm=arm)
    site.release()
    return site


def _site(home: Path, survey: bytes) -> Site:
    return make_site(home, f"sqlite:///{home / 'frankly.db'}", survey)


def _answer(site: Site, document: SurveyDocument, numbers: Any, arm: str | None = None) -> None:
    rng = Random(f"{document.version} {arm}")
    blocks: Sequence[Any] = document.blocks if arm is None else document.views[arm].blocks
    sent = []
    for number in (next(numbers) for _ in range(REPORTS)):
        symbols = []
        for block in blocks:
            truth = rng.randrange(len(block.questions[0].choices))
            symbols.append(
                block.mechanism.symbol_json(block.mechanism.sample(truth, rng.getrandbits))
            )
        sent.append(site.report(number, doc=document.digest, y=symbols, strata=_public(rng, arm)))
    for start in range(0, REPORTS, _BATCH):
        site.services.intake.accept_batch(site.survey, sent[start : start + _BATCH])


def _public(rng: Random, arm: str | None) -> dict[str, str]:
    if arm is None:
        region = rng.choices(("north", "south", "west"), (60, 38, 2))[0]
        return {"region": region, "age-group": rng.choice(("young", "old"))}
    # Fewer than the survey's minimum are from the south.
    clear = {"paid": rng.choice(("no", "yes"))} if arm == "clear" else {}
    return {"region": rng.choices(("n", "s"), (97, 3))[0], "arm": arm} | clear
