# SPDX-License-Identifier: Apache-2.0
"""Protect forms that others have published: `python -m tests.browser.stacks.published FOLDER`.

FOLDER has one SurveyJS form per JSON file. For each, a survey that asks the same is published on a
local server, and the form is protected, filled in and completed in Node. Prints what happened to
the forms and their questions.
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.browser.sdk.site import hosted
from tests.browser.stacks.conftest import run

MIN_QUESTIONS = 3
"""Smaller forms are examples of one feature."""


def survey_text(questions: list[dict[str, Any]]) -> str:
    """Return a survey's file with these questions, for `hosted`."""
    survey = {
        "name": "habits",
        "title": {"en": "Published"},
        "languages": ["en"],
        "opens": "OPENS",
        "closes": "CLOSES",
        "min_reports": 10,
        "budget": "8",
        "form": {"ask": "all", "questions": questions},
    }
    text = json.dumps(survey).replace("{", "{{").replace("}", "}}")
    return text.replace("OPENS", "{opens}").replace("CLOSES", "{closes}")


def attempt(form: Any, home: Path) -> dict[str, Any]:
    """Protect and complete one form; return what the program writes."""
    asked = run("published", {"form": form})
    if not asked["questions"]:
        return asked | {"status": "nothing to protect"}
    with hosted(home, text=survey_text(asked["questions"]), languages=("en",)) as site:
        given = {"form": form, "link": site.link, "map": asked["map"]}
        return asked | run("published", given)


def main(folder: Path) -> None:
    """Attempt each form of a folder and print the figures."""
    outcomes, types, protected, reasons = (
        Counter[str](),
        Counter[str](),
        Counter[str](),
        Counter[str](),
    )
    for path in sorted(folder.glob("*.json")):
        with tempfile.TemporaryDirectory() as home:
            try:
                result = attempt(json.loads(path.read_text("utf-8")), Path(home))
            except Exception as error:  # noqa: BLE001 - any failure is a result here
                result = {"types": [None] * MIN_QUESTIONS, "failed": str(error).strip()[-300:]}
        if len(result["types"]) < MIN_QUESTIONS:
            continue
        outcome = result.get("status") or result["failed"].split(":")[0]
        outcomes[outcome] += 1
        types.update(result["types"])
        protected.update(result.get("left", []))
        reasons.update("/".join(one) for one in result.get("warnings", []))
        odd = {key: result.get(key) for key in ("failed", "wrong", "seen", "variables", "requests")}
        sys.stdout.write(
            f"{path.name} {outcome} {json.dumps({k: v for k, v in odd.items() if v})}\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"{outcomes.total()} forms: {dict(outcomes)}\n{types.total()} questions\n")
    for kind, count in types.most_common():
        sys.stdout.write(f"{kind}: {protected[kind]} of {count} protected\n")
    sys.stdout.write(f"warnings: {dict(reasons.most_common())}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
