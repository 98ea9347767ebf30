# SPDX-License-Identifier: Apache-2.0
"""The form of the protection step: the values that it shows, and the draft that it describes."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice, product
from typing import Any, Final

from flask import request
from frankly_design.requests.levels import ONE_SIDED
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys import editing
from frankly_server.surveys.csv_prior import MAX_BYTES, public_questions, read_counts
from frankly_server.surveys.definition import FORM_ID, BlockDefinition, parse_value
from frankly_server.surveys.editing import Draft
from frankly_server.surveys.priors import prior_columns
from frankly_server.surveys.protection import (
    BACKSTOP,
    Protection,
    main_question,
    protect,
    sensitive_answer,
    unsupported_features,
)
from frankly_server.surveys.question_definition import QuestionDefinition
from frankly_server.surveys.question_edit import edit_of
from frankly_server.surveys.question_editing import with_question
from frankly_server.surveys.strengths import STOPS, level_at, stop_of
from frankly_server.web.admin.forms import choice, field, refuse_unused, ticked
from frankly_server.web.admin.survey_page import asked_part
from frankly_server.web.opened_survey import OpenedSurvey

_OPEN: Final = "inf"
"""Level in survey files for a side of alip that is not promised."""
_MAX_TOGETHER: Final = 16
_BETA: Final = "0.05"
SECRETS: Final = ("answer", "one", "attribute", "question")
"""What can be sensitive: the answer, one of the answers, or what the answer gives away: something that
is not asked, or the answer to another question."""
_GIVEN_AWAY: Final = ("attribute", "question")
_OF_SECRET: Final = ("notion", "counts", "source", "public", "backstop")
"""Fields for what the answer gives away."""
_SECRET: Final = "something that the answer gives away"  # noqa: S105 - words of the page
FIELDS: Final = (
    *(
        "seen",
        "block",
        "expected_reports",
        "secret",
        "one",
        "question",
        "other",
        "name",
        "counts_file",
    ),
    *(*_OF_SECRET, "strength", "epsilon", "high", "low", "sample", "beta"),
    *("mechanism", "objective", "unchanged", "replace", "ask"),
)
"""Fields that occur at most once; `together` may repeat."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a page of the protection step is about: a block, or the form, whose `block` is None."""

    id: str
    block: BlockDefinition | None
    partners: Sequence[QuestionDefinition]
    """The questions that can be a block's secret, or be randomised with its main question."""

    @property
    def notion(self) -> str | None:
        """The notion of the block; that of a form is always ldp."""
        return "ldp" if self.block is None else self.block.notion


def part_of(survey: OpenedSurvey) -> Part:
    """Return the part in the form or query. Raises InvalidInput(survey_unknown) for any other name."""
    name = asked_part(survey)
    block = next((block for block in survey.definition.blocks if block.id == name), None)
    return Part(name, block, () if block is None else _partners(survey, block))


def _partners(survey: OpenedSurvey, block: BlockDefinition) -> list[QuestionDefinition]:
    main = main_question(block)
    alone = [
        other.questions[0]
        for other in survey.definition.blocks
        if other.id != block.id and len(other.questions) == 1
    ]
    return [question for question in block.questions if question.id != main.id] + alone


def choices_of(survey: OpenedSurvey, part: Part) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the questions of which one answer can be sensitive: id, text, and value and label of each answer."""
    language, form = survey.definition.languages[0], survey.definition.form
    asked: Sequence[Any] = () if form is None else [q for q in form.questions if not q.boxes]
    if part.block is not None:
        asked = [main_question(part.block)]
    return [
        (
            question.id,
            question.text[language],
            [(f"{question.id}/{one.id}", one.label[language]) for one in question.choices],
        )
        for question in asked
    ]


def entered(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values with which the page shows a form again. values : those that it showed at first."""
    sent = {name: text for name, text in request.form.items() if name != "together"}
    upload = request.files.get("counts_file")
    if upload and upload.filename:  # browsers forget a file that was refused
        upload.seek(0)
        sent["counts"] = upload.read(MAX_BYTES).decode("utf-8-sig", "replace")
    return dict(values) | dict.fromkeys(("public", "backstop", "unchanged", "replace"), "") | sent


def shown(survey: OpenedSurvey, part: Part, ask: str) -> dict[str, str]:
    """Return the values with which the page shows the fields. ask : what the form asks a person."""
    of_form = part.block is None
    level = survey.definition.form_epsilon if part.block is None else _level_of(part.block)
    answers = choices_of(survey, part)
    stop = stop_of(level, part.notion)
    is_stop = stop is None or level == level_at(stop, part.notion or "")
    usual = STOPS.index("1") if stop is None else stop
    values = {
        "expected_reports": str(survey.definition.expected_reports),
        "secret": "answer",
        # The last answer, as “Yes” is, and before those who do not answer.
        "one": _last_answer(survey, answers[0][0]) if answers else "",
        "question": answers[0][0] if answers else "",
        "strength": str(usual),
        "epsilon": "" if is_stop else str(level),
        "ask": ask if of_form else "",
        "notion": "lip",
        "beta": _BETA,
        **dict.fromkeys(("name", "source", "public", "high", "low", "sample", "replace"), ""),
        # A list without a chosen entry shows its first one.
        "other": next((question.id for question in part.partners), ""),
        "counts": _empty_counts(survey, part),
        "backstop": "yes",
    }
    return values if part.block is None else values | _of_block(survey, part, part.block)


def _last_answer(survey: OpenedSurvey, question_id: str) -> str:
    (question,) = [one for one in survey.definition.questions if one.id == question_id]
    plain = [choice.id for choice in question.choices if choice.role is None]
    return f"{question_id}/{(plain or [question.choices[-1].id])[-1]}"


def example_of(survey: OpenedSurvey, part: Part) -> str:
    """Return an example of counts for the part, as CSV with all answers and all public answers."""
    answers, public = choices_of(survey, part), survey.definition.strata
    labels = [label for _, label in answers[0][2]] if answers else []
    counts = {"low": (120, 30, 50), "high": (40, 60, 20)}
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow([*(question.id for question in public), "", *labels])
    for when in product(*([one.id for one in question.choices] for question in public)):
        for secret, numbers in counts.items():
            table.writerow([*when, secret, *islice(cycle(numbers), len(labels))])
    return written.getvalue().rstrip()


def _level_of(block: BlockDefinition) -> str | None:
    one = sensitive_answer(block)
    return block.epsilon if one is None else one[1]


def _of_block(survey: OpenedSurvey, part: Part, block: BlockDefinition) -> dict[str, str]:
    prior, robust, kind = block.prior, block.robust, secret_of(block, part.partners)
    low, high = _sides(block)
    notion = "alip" if block.notion in ONE_SIDED else block.notion
    one, own = sensitive_answer(block), {"secret": kind}
    if one is not None:
        own["one"] = f"{main_question(block).id}/{one[0]}"
    if prior is not None and kind == "question":
        own["other"] = prior.secret or ""
    return own | {
        "notion": notion if prior is not None and notion is not None else "lip",
        "high": high,
        "low": low,
        "sample": str(robust.n) if robust else "",
        "beta": str(robust.beta) if robust else _BETA,
        "name": (prior.secret if prior and kind == "attribute" else "") or "",
        "counts": _counts_text(survey, block),
        "source": prior.source if prior else "",
        "public": "yes" if prior and prior.public else "",
        "backstop": "yes" if prior is None or block.ceiling_cap else "",
        "mechanism": block.mechanism,
        "objective": block.objective,
        "unchanged": "yes" if block.accept_identity else "",
    }


def secret_of(block: BlockDefinition, partners: Sequence[QuestionDefinition]) -> str:
    """Return what is sensitive about a block's answer, one of SECRETS."""
    if sensitive_answer(block) is not None:
        return "one"
    if block.prior is None or block.prior.secret is None:
        return "answer"
    return (
        "question" if block.prior.secret in [question.id for question in partners] else "attribute"
    )


def _sides(block: BlockDefinition) -> tuple[str, str]:
    """Return the lower and the upper level of alip for the form; "" for a side without a level."""
    if block.notion in ONE_SIDED:
        level = block.epsilon or ""
        return ("", level) if block.notion == "pml" else (level, "")
    low, high = (
        "" if side in (None, _OPEN) else str(side)
        for side in (block.epsilon_low, block.epsilon_high)
    )
    return low, high


def _empty_counts(survey: OpenedSurvey, part: Part) -> str:
    """Return the first line of a form's counts, if a single question can be meant."""
    answers = choices_of(survey, part)
    if len(answers) != 1:
        return ""
    columns = [value.partition("/")[2] for value, _ in answers[0][2]]
    return ",".join([*(question.id for question in survey.definition.strata), "", *columns])


def _counts_text(survey: OpenedSurvey, block: BlockDefinition) -> str:
    """Return the block's counts as CSV for the form; only the header line if there are none."""
    prior, public = block.prior, [question.id for question in survey.definition.strata]
    # With public questions the empty form requests counts by stratum: without these, only the
    # backstop protects.
    by_stratum = bool(public) and (prior is None or bool(prior.strata))
    lines = [[*(public if by_stratum else ()), "", *prior_columns(block)]]
    for table, when in zip(prior.tables if prior else (), _whens(block), strict=True):
        # A table may lack a name for the secret; the form then needs some word in the first column.
        secrets = (prior.secrets if prior else None) or ("answer",)
        lines += [[*when, secret, *row] for secret, row in zip(secrets, table, strict=True)]
    return "\n".join(",".join(line) for line in lines)


def _whens(block: BlockDefinition) -> list[list[str]]:
    if block.prior is None:
        return []
    return [list(stratum.when.values()) for stratum in block.prior.strata] or [[]]


def edited(survey: OpenedSurvey, part: Part, ask: str) -> tuple[Draft, str]:
    """Return the draft that the form describes, and the id of the part that it protects.

    ask : what the form asks a person today. Raises InvalidInput.
    """
    _require_used(part, shown(survey, part, ask))
    _require_consent(part)
    draft, kind = survey.draft, choice("secret", SECRETS, "answer")
    if "expected_reports" in request.form:
        draft["expected_reports"] = field("expected_reports")
    if part.block is not None:
        return _as_saved(survey, protect(draft, part.id, _wanted(survey, part, kind))), part.id
    if kind != "answer":
        name = _leaving(survey, part, kind)
        # The question leaves the form, because all answers of a form are protected alike.
        edit = replace(edit_of(draft, name), place="block", wanted="", importance="")
        moved = with_question(draft, edit, name)
        block = next(one for one in moved["blocks"] if one["questions"][0]["id"] == name)
        return protect(moved, block["id"], _wanted(survey, part, kind)), block["id"]
    draft = editing.with_form_level(draft, _nats("ldp"))
    wanted = choice("ask", ("drawn", "all"), ask)
    # An unstated choice stays unstated, so that a copy of the survey makes its own.
    return (draft if wanted == ask else editing.with_form_ask(draft, wanted)), FORM_ID


def _as_saved(survey: OpenedSurvey, draft: Draft) -> Draft:
    """Return the draft with the budget that it had, if nothing is protected in another way than before."""
    # As read, because a draft may state what is usual.
    is_same = parse_value(draft).blocks == survey.definition.blocks
    return draft | {"budget": survey.draft["budget"]} if is_same else draft


def _leaving(survey: OpenedSurvey, part: Part, kind: str) -> str:
    """Return the id of the question that leaves the form to be protected by itself. Raises InvalidInput."""
    at = "one" if kind == "one" else "question"
    name, offered = field(at).partition("/")[0], choices_of(survey, part)
    if name not in [question_id for question_id, *_ in offered]:
        raise InvalidInput(
            Problem.FIELD_MISSING, "choose a question that is protected together", at
        )
    form = survey.definition.form
    rules = {} if form is None else {q.id: q.ask_if.question for q in form.questions if q.ask_if}
    if name in rules or name in rules.values():
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "whether this question is asked depends on another one, or the other way round: remove that rule first, on "
            "the page Questions",
            at,
        )
    return name


def _require_consent(part: Part) -> None:
    """Raise InvalidInput(unsupported) if saving would remove file-only features unconfirmed."""
    features = () if part.block is None else unsupported_features(part.block)
    if features and not ticked("replace"):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the file protects this question with {', '.join(features)}, which this form would "
            "replace: tick the box to allow that, or change the file",
            "replace",
        )


def _require_used(part: Part, values: Mapping[str, str]) -> None:
    """Raise InvalidInput(unsupported) for a field that was filled in beside the choices made."""
    kind = choice("secret", SECRETS, "answer")
    gives_away = kind in _GIVEN_AWAY
    notion = field("notion") or "lip" if gives_away else ""
    # Browsers always send a notion, and send no box that is not ticked.
    if not gives_away and values["backstop"] and field("notion") and not ticked("backstop"):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the backstop is unticked, but counts only with {_SECRET}: choose that, or tick it",
            "backstop",
        )
    upload = request.files.get("counts_file")
    if upload and upload.filename:
        if not gives_away:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"a file is chosen, but counts only with {_SECRET}: choose that, or no file",
                "counts_file",
            )
        refuse_unused(["counts"], values, "no file of counts")
    for is_used, names, use in (
        (gives_away, _OF_SECRET, _SECRET),
        (kind == "one", ("one",), "only one of the answers as sensitive"),
        (kind == "question", ("other",), "another question's answer as the secret"),
        (kind == "attribute", ("name",), "something that is not asked as the secret"),
        (gives_away and part.block is None, ("question",), _SECRET),
        (
            kind == "answer" and part.block is None,
            ("ask",),
            "questions that are protected together",
        ),
        (notion == "alip", ("high", "low"), f"{_SECRET}, and with the choice above it (ALIP)"),
        (notion == "rldp", ("sample", "beta"), f"{_SECRET}, and with Robust LDP"),
        (notion != "alip", ("epsilon",), "a promise of one level (not ALIP)"),
    ):
        if not is_used:
            refuse_unused(names, values, use)
    if field("epsilon") and notion != "alip":
        refuse_unused(["strength"], values, "an empty exact level below, under “For experts”")


def _wanted(survey: OpenedSurvey, part: Part, kind: str) -> Protection:
    """Return the protection of a block that the form describes."""
    together = request.form.getlist("together")
    if len(together) > _MAX_TOGETHER:
        raise InvalidInput(
            Problem.UNSUPPORTED, f"select at most {_MAX_TOGETHER} questions", "together"
        )
    gives_away = kind in _GIVEN_AWAY
    direct = Protection(
        _levels(part) if gives_away else {"epsilon": _nats("ldp")},
        mechanism=field("mechanism") or "optimal",
        objective=field("objective") or "variance",
        accept_identity=ticked("unchanged"),
        together=tuple(together),
        one=_sensitive(part) if kind == "one" else None,
    )
    # If the secret is the answer itself, no counts are needed.
    if not gives_away:
        return direct
    upload = request.files.get("counts_file")
    data = (
        # One byte more than allowed, so that `read_counts` detects a file that is too large.
        upload.read(MAX_BYTES + 1)
        if upload and upload.filename
        else request.form.get("counts", "").encode()
    )
    partner = field("other") if kind == "question" else None
    own = () if part.block is None else [question.id for question in part.block.questions]
    # For rldp, `protect` adds the secret to these questions, and the page then shows it among them;
    # otherwise it refuses the secret here.
    is_added = field("notion") == "rldp" or partner in own
    return replace(
        direct,
        together=tuple(name for name in together if name != partner or not is_added),
        secret=None if kind == "question" else field("name"),
        other=partner,
        counts=read_counts(data, public_questions(survey.draft.get("strata"))),
        source=field("source"),
        public=ticked("public"),
        backstop=BACKSTOP if ticked("backstop") else None,
    )


def _sensitive(part: Part) -> str:
    """Return the id of the chosen answer, which must be one of the part's question."""
    question_id, _, choice_id = field("one").partition("/")
    # A question of the form was looked up by its id.
    if part.block is not None and question_id != main_question(part.block).id:
        return ""
    return choice_id


def _levels(part: Part) -> dict[str, Any]:
    """Return the form's notion for a secret with its levels, in the form of survey files.

    A one-sided notion that the block calls pml or pmc keeps that name.
    """
    notion = field("notion") or "lip"
    if notion == "alip":
        low, high = field("low") or _OPEN, field("high") or _OPEN
        by_name = {"pml": (low, high), "pmc": (high, low)}.get(part.notion or "")
        if by_name is not None and by_name[0] == _OPEN != by_name[1]:
            return {"notion": part.notion, "epsilon": by_name[1]}
        return {"notion": notion, "epsilon_low": low, "epsilon_high": high}
    levels: dict[str, Any] = {"notion": notion, "epsilon": _nats(notion)}
    if notion == "rldp":
        beta = field("beta") or _BETA
        levels["robust"] = {"order": "2", "n": field("sample"), "beta": beta}
    return levels


def _nats(notion: str) -> str:
    """Return a level in nats: the exact one if it is given, or that of the slider's stop."""
    if field("epsilon"):
        return field("epsilon")
    stop = choice("strength", [str(stop) for stop in range(len(STOPS))], "")
    return level_at(int(stop), notion) if stop else ""
