# SPDX-License-Identifier: Apache-2.0
"""English texts of the SDK, and replacements that are refused."""

import json
from pathlib import Path
from typing import Any

from frankly_protocol import explanation

FOLDER = Path(explanation.__file__).parent / "texts"
PARTS = ("label", "explanation", "promises", "whole", "budget", "element", "page")


def file_of(language: str) -> Any:
    return json.loads((FOLDER / f"{language}.json").read_text("utf-8"))


ENGLISH = file_of("en")
BAD = [
    (["limits"], "field_type", "texts"),
    ({"limits": "x"}, "field_unknown", "texts.limits"),
    ({"explanation": "x"}, "field_type", "texts.explanation"),
    ({"explanation": {"limit": "x"}}, "field_unknown", "texts.explanation.limit"),
    ({"explanation": {"limits": 7}}, "field_type", "texts.explanation.limits"),
    ({"explanation": {"picked": {"one": "x"}}}, "field_type", "texts.explanation.picked"),
    ({"explanation": {"limits": "{ratio}"}}, "field_type", "texts.explanation.limits"),
    ({"whole": {"cost": {"other": "{nat}"}}}, "field_type", "texts.whole.cost"),
]
GRADE = 8
LABEL_GRADE = 6
"""Of the summary and the label, which everybody should read."""
