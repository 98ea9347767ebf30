# SPDX-License-Identifier: Apache-2.0
"""Pictures of the survey templates: the estimates page's chart of one question, for invented shares.

`python -m tools.template_pictures` designs every template as publishing it does, and writes
server/frankly_server/surveys/templates/NAME.svg. A bar is an invented share. Its whisker is the
planned margin at 95% (`Plan.margins_at`) for the template's expected number of reports, if the true
shares are the invented ones.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Final

import numpy as np
from frankly_analyst.charts import Line, Scale, intervals
from frankly_analyst.shown import Shown
from frankly_design.estimate.planner import Plan, Setting
from frankly_server.surveys import survey_templates
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.drafting import Place, draft_blocks, draft_document
from frankly_server.surveys.preview import Stated, stated_of

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "server" / "frankly_server" / "surveys" / "templates"
# Made up, because the documents are never signed.
_PLACE: Final = Place("0" * 32, 1, None, datetime(2026, 1, 1, tzinfo=UTC), "https://example.org")

INVENTED: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "questionnaire": {"stress": (0.31, 0.45, 0.18, 0.06)},
    "members": {"stay": (0.62, 0.21, 0.12, 0.05)},
    "workplace": {"harassment": (0.82, 0.18)},
    "rare": {"gift": (0.94, 0.06)},
    "health": {"treatment": (0.88, 0.12)},
    "customer": {"reason": (0.29, 0.18, 0.13, 0.06, 0.12, 0.09, 0.07, 0.06)},
    "opinion": {"vote": (0.24, 0.22, 0.19, 0.14, 0.12, 0.09)},
    "student": {"grade": (0.28, 0.47, 0.25), "cheated": (0.73, 0.27)},
    "validation": {"fined": (0.71, 0.23, 0.06)},
    "attributes": {"housing": (0.44, 0.56), "children": (0.58, 0.42)},
    "census": {"sector": (0.41, 0.34, 0.25), "income": (0.66, 0.34)},
}
"""Template -> question -> invented shares; the first question is drawn.

Questions that are randomised together with it need shares too; they count as independent of it.
"""


def picture(name: str) -> str:
    """Return the SVG of a template. Designing it takes up to two seconds."""
    definition = parse_definition(survey_templates.template(name))
    document = draft_document(definition, draft_blocks(definition), _PLACE)
    drawn, shares = next(iter(INVENTED[name].items()))
    stated = next(s for s in stated_of(document) if [q.id for q in s.questions] == [drawn])
    people = definition.expected_reports
    about = int(people * stated.share)
    (question,) = stated.questions
    lines = [
        Line.of(
            choice.label[document.languages[0]],
            # Rounded first, so that the last bits of a design do not decide how a picture is rounded.
            Shown.of(
                share, round(share - margin, 4), round(share + margin, 4), possible=(0.0, 1.0)
            ),
        )
        for choice, share, margin in zip(
            question.choices, shares, _margins(stated, INVENTED[name], about), strict=True
        )
    ]
    # Rounded to tens, because designs can differ in their last bits between processors.
    part = "" if about == people else f", about {round(about, -1):,} of them to this question"
    title = f"{question.text[document.languages[0]]} An example: invented shares, for {people:,} answers{part}."
    return intervals(title, [("", lines)], Scale.of_shares(lines)) + "\n"


def _margins(
    stated: Stated, invented: Mapping[str, tuple[float, ...]], reports: int
) -> list[float]:
    """Return the half-width of each choice's share at 95%, if the invented shares are true."""
    block, (question,) = stated.block, stated.questions
    place = block.questions.index(question)
    cells = list(product(*(range(len(q.choices)) for q in block.questions)))
    truth = [
        prod(invented[q.id][i] for q, i in zip(block.questions, c, strict=True)) for c in cells
    ]
    targets = tuple(
        tuple(Fraction(cell[place] == i) for cell in cells) for i in range(len(question.choices))
    )
    plan = Plan(block.numbered_mechanism, targets, block.design_prior, Setting())
    return plan.margins_at(np.array(truth), reports)


def main() -> None:
    """Write the pictures."""
    for name in survey_templates.ORDER:
        (FOLDER / f"{name}.svg").write_text(picture(name), "utf-8")


if __name__ == "__main__":
    main()
