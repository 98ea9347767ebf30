# SPDX-License-Identifier: Apache-2.0
"""Arms of a survey file: versions of the survey of which a device draws one (spec 3.10)."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Annotated, Final

from frankly_design.requests.fields import ClosedModel, Positive, Slug, custom
from frankly_protocol.arms import BITS, Arm, Arms
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import AfterValidator, Field

if TYPE_CHECKING:
    from frankly_server.surveys.definition import SurveyDefinition
    from frankly_server.surveys.question_definition import FormItem, QuestionDefinition

ARMS_ID: Final = "arm"
"""The name under which reports and estimates say which arm was drawn."""
_MIN_STEPS_PER_CELL: Final = 5


def _share(text: str) -> str:
    if not Decimal("0.001") <= Decimal(text) <= 1000:
        raise custom(Problem.DEFINITION_INVALID, "write a number from 0.001 to 1000")
    return text


class ArmDefinition(ClosedModel):
    """One arm.

    share : how often it is drawn, in relation to the others; 1 by default. strata, blocks : ids of the
    public questions and of the blocks (`form` is that of the form) that only the arms ask that name them,
    in the order in which they are asked. What no arm names is asked in all of them, before the others.
    """

    id: Slug
    share: Annotated[Positive, AfterValidator(_share)] = "1"
    strata: Annotated[tuple[Slug, ...], Field(max_length=8)] = ()
    blocks: Annotated[tuple[Slug, ...], Field(max_length=100)] = ()


def arms_of(definition: "SurveyDefinition") -> Arms | None:
    """Return the arms of the document, with chances out of 65,536; None without arms."""
    arms = definition.arms
    if not arms:
        return None
    named_strata = {name for arm in arms for name in arm.strata}
    named_blocks = {name for arm in arms for name in arm.blocks}
    strata = [q.id for q in definition.strata if q.id not in named_strata]
    blocks = [name for name in definition.parts if name not in named_blocks]
    return Arms(
        ARMS_ID,
        tuple(
            Arm(arm.id, chance, (*strata, *arm.strata), (*blocks, *arm.blocks))
            for arm, chance in zip(arms, _chances([Fraction(a.share) for a in arms]), strict=True)
        ),
    )


def _chances(shares: Sequence[Fraction]) -> list[int]:
    """Return shares as whole numbers of at least 1 that sum to 65,536, rounded by largest remainders."""
    left = (1 << BITS) - len(shares)
    exact = [share / sum(shares) * left for share in shares]
    chances = [1 + int(one) for one in exact]
    remainders = sorted(range(len(shares)), key=lambda i: (chances[i] - 1 - exact[i], i))
    for i in remainders[: (1 << BITS) - sum(chances)]:
        chances[i] += 1
    return chances


def strata_of(definition: "SurveyDefinition", block: str) -> tuple["QuestionDefinition", ...]:
    """Return the public questions beside a block: those of the first arm that has it."""
    arms = arms_of(definition)
    if arms is None:
        return definition.strata
    asked = next((arm.strata for arm in arms.arms if block in arm.blocks), ())
    return tuple(question for question in definition.strata if question.id in asked)


def require_arms(definition: "SurveyDefinition") -> None:
    """Raise InvalidInput, with its path, for arms that no document could have, or with too few people."""
    arms = arms_of(definition)
    if arms is None:
        return
    _require_distinct([arm.id for arm in arms.arms], "arms", "arms")
    if len(arms.arms) < 2:
        raise _refused("a survey has two to eight arms, or none: leave this out", "arms")
    known = {"strata": [q.id for q in definition.strata], "blocks": list(definition.parts)}
    _require_distinct(known["strata"], "strata", "public questions")
    for i, written in enumerate(definition.arms):
        for name, ids in (("strata", written.strata), ("blocks", written.blocks)):
            wrong = next((one for one in ids if one not in known[name]), None)
            if wrong is not None:
                listed = ", ".join(known[name]) or "none"
                raise _refused(
                    f"{wrong} is not the id of a {'public question' if name == 'strata' else 'block'}: "
                    f"there {'are' if listed == 'none' or ',' in listed else 'is'} {listed}",
                    f"arms[{i}].{name}",
                )
            _require_distinct(ids, f"arms[{i}].{name}", "entries")
    for i, arm in enumerate(arms.arms):
        if not arm.blocks and not arm.strata:
            raise _refused("this arm asks nothing: name its blocks or strata", f"arms[{i}]")
        asked = [q.id for q in _asked_in(definition, arm)]
        asked += [] if definition.instructed is None else [definition.instructed.id]
        _require_distinct([*asked, ARMS_ID], f"arms[{i}]", "questions of this arm", ARMS_ID)
        _require_large_cells(definition, arm, i)


def _require_large_cells(definition: "SurveyDefinition", arm: Arm, i: int) -> None:
    """Raise unless an arm is expected to have enough reports in every cell of its public answers."""
    if definition.accept_small_cells:
        return
    cells = prod(_cells(definition, arm))
    expected, needed = (
        definition.expected_reports * arm.share,
        _MIN_STEPS_PER_CELL * definition.step,
    )
    if expected < cells * needed:
        raise _refused(
            f"of {definition.expected_reports} expected_reports this arm has about {float(expected):.0f}, "
            f"and {cells} combinations of public answers, so that fewer than {needed} are left for "
            "each: many reports would stay pending for long, or lose their public answers at the end. "
            "Give it a larger share, ask fewer public questions, expect more, or set "
            "accept_small_cells: true",
            f"arms[{i}].share",
        )


def cells_of_arms(definition: "SurveyDefinition") -> list[list[int]]:
    """Return the numbers of choices of the public questions that divide cells, of each arm."""
    arms = arms_of(definition)
    if arms is None:
        return [[len(question.choices) for question in definition.strata]]
    return [_cells(definition, arm) for arm in arms.arms]


def _cells(definition: "SurveyDefinition", arm: Arm) -> list[int]:
    protected = {(q.id, *(c.id for c in q.choices)) for q in definition.drawn_questions}
    # Answers that another arm protects are counted like symbols, so they divide no cell.
    return [
        len(q.choices)
        for q in definition.strata
        if q.id in arm.strata and (q.id, *(c.id for c in q.choices)) not in protected and arm.blocks
    ]


def _asked_in(
    definition: "SurveyDefinition", arm: Arm
) -> Iterable["QuestionDefinition | FormItem"]:
    return (
        *(question for _, question in placed_in(definition, arm)),
        *(question for question in definition.strata if question.id in arm.strata),
    )


def placed_in(
    definition: "SurveyDefinition", arm: Arm
) -> list[tuple[str, "QuestionDefinition | FormItem"]]:
    """Return path in the file and question, or box, of what an arm randomises, in its order."""
    by_part: dict[str, list[tuple[str, QuestionDefinition | FormItem]]] = {}
    for path, question in definition.places:
        # A path is blocks[i].questions[k] or form.questions[k].
        number = path.partition("[")[2].partition("]")[0]
        part = "form" if path.startswith("form") else definition.blocks[int(number)].id
        by_part.setdefault(part, []).append((path, question))
    return [place for part in arm.blocks for place in by_part.get(part, ())]


def _require_distinct(names: Sequence[str], path: str, what: str, own: str = "") -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            reason = f"{own} names the arm in reports" if name == own else "ids differ"
            raise _refused(f"two {what} are called {name}; {reason}", path)


def _refused(detail: str, path: str) -> InvalidInput:
    return InvalidInput(Problem.DEFINITION_INVALID, detail, path)
