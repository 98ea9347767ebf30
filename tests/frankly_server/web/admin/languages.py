# SPDX-License-Identifier: Apache-2.0
"""Surveys in other languages with answers, and links to their results."""

import re
from itertools import count
from random import Random
from typing import Any

from frankly_protocol.blocks import Block
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.web.admin.office import Office
from tests.survey_files import DRINKS, REGION, SMOKES, habits

NUMBERS = count()
SURVEY_TEXTS = re.compile(rb'\{en: ("?)([^}"]*)"?\}')
MOOD = """\
  - id: mood
    notion: ldp
    epsilon: "1"
    mechanism: grr
    questions:
      - id: mood
        text: {en: "How do you feel?"}
        choices:
          - {id: low, label: {en: Low}, score: 1}
          - {id: medium, label: {en: Medium}, score: 2}
          - {id: high, label: {en: High}, score: 3}
"""
ITEM = """\
instructed:
  id: check
  text: {en: "Choose the second."}
  choices: [{id: a, label: {en: First}}, {id: b, label: {en: Second}}, {id: c, label: {en: Third}}]
  answer: b
"""
FILE = habits(SMOKES, DRINKS, MOOD, budget="3", strata=REGION) + ITEM.encode()


def translated(file: bytes, *tags: str) -> bytes:
    """Return a survey file with its texts in these languages: Arabic letters for that one, else Greek letters."""

    def spoken(text: str, tag: str) -> str:
        first, count = ("ب", 26) if tag == "ar" else ("α", 17)
        letters = (chr(ord(first) + ord(one) % count) if one.isalpha() else one for one in text)
        return "".join(letters)

    def of(found: re.Match[bytes]) -> bytes:
        text = found[2].decode()
        return ("{" + ", ".join(f'{tag}: "{spoken(text, tag)}"' for tag in tags) + "}").encode()

    return SURVEY_TEXTS.sub(of, file).replace(b"[en]", f"[{', '.join(tags)}]".encode())


def drawn(block: Block, seed: int) -> Any:
    """Return the symbols of a person who gives the same choice to every question."""
    choices = {question.id: question.choices[seed % 2].id for question in block.questions}
    mechanism: Any = block.mechanism
    symbol = mechanism.sample(block.truth(choices), Random(seed).getrandbits)
    return list(symbol) if isinstance(symbol, tuple) else symbol


def published(office: Office, *tags: str, file: bytes = FILE) -> str:
    """Return the id of a new survey in these languages with answers."""
    name = f"many{next(NUMBERS)}"
    file = re.sub(b"^name: .*", f"name: {name}".encode(), translated(file, *tags))
    surveys, services = office.services.surveys, office.services
    surveys.apply(parse_definition(file))
    survey = surveys.publish(name).survey_id
    document = surveys.versions(survey)[-1]
    reports = [
        {"v": 1, "doc": document.digest, "id": f"{i:032x}", "token": None,
         "y": [drawn(block, i) for block in document.blocks],
         "strata": {"region": "north" if i % 2 else "south", "check": "failed" if i % 5 else "passed"}}
        for i in range(400)
    ]  # fmt: skip
    for outcome in services.intake.accept_batch(survey, reports):
        assert getattr(outcome, "status", None) == "accepted", outcome
    services.releasing.release()
    return survey


def link(office: Office, survey: str) -> str:
    key = office.services.access.create("reader", "a guest", "main", [survey])
    return "/results/" + key.removeprefix("frankly_live_")
