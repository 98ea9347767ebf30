# SPDX-License-Identifier: Apache-2.0
"""Small survey file for tests to change."""

import copy
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from frankly_server.surveys.drafting import Place
from jsonschema import Draft202012Validator

FILE = """\
name: habits
title: {en: Habits}
languages: [en]
opens: 2026-05-01T00:00:00Z
closes: 2026-07-01T00:00:00Z
expires: 2026-08-01T00:00:00Z
min_reports: 50
budget: "4"
blocks:
  - id: affair
    questions:
      - id: affair
        text: {en: "Did you have an affair?"}
        choices: [{id: no, label: {en: No}}, {id: yes, label: {en: Yes}}]
    notion: ldp
    epsilon: "1"
    mechanism: warner
  - id: happy
    questions:
      - id: happy
        text: {en: "How happy are you?"}
        choices:
          - {id: low, label: {en: Not very}}
          - {id: mid, label: {en: Fairly}}
          - {id: top, label: {en: Very}}
    notion: lip
    epsilon: "0.3"
    prior:
      secret: affair
      secrets: [no, yes]
      joint: [[100, 200, 300], [150, 120, 60]]
      source: a public pilot
"""
PLACE = Place(
    "ab" * 16, 1, None, datetime(2026, 6, 1, tzinfo=UTC), "https://example.org/v1/surveys/x/reports"
)
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "survey_file.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA)


def value(changes: Mapping[tuple[Any, ...], Any] | None = None) -> Any:
    """Return the file as texts, lists and maps, with some paths replaced; None removes a field."""
    found = copy.deepcopy(yaml.load(FILE, Loader=yaml.BaseLoader))
    for path, new in (changes or {}).items():
        target = found
        for part in path[:-1]:
            target = target[part]
        if new is None:
            del target[path[-1]]
        else:
            target[path[-1]] = new
    return found


def data(changes: Mapping[tuple[Any, ...], Any] | None = None) -> bytes:
    """Return the changed file as bytes."""
    return yaml.safe_dump(value(changes), allow_unicode=True).encode()
