# SPDX-License-Identifier: Apache-2.0
"""Protection step: a form in plain language, and the resulting changes to a block."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.requests.levels import ONE_SIDED
from frankly_server.services import Services
from frankly_server.surveys import editing
from frankly_server.surveys.asked import asks
from frankly_server.surveys.csv_prior import MAX_BYTES, public_questions, read_counts
from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.preview import LEVELS, LEVELS_S, OFFERED, margins_by_level
from frankly_server.surveys.priors import prior_columns, small_cells
from frankly_server.surveys.protection import (
    BACKSTOP,
    Protection,
    main_question,
    protect,
    unsupported_features,
)
from frankly_server.surveys.question_definition import QuestionDefinition
from frankly_server.surveys.strengths import strengths
from frankly_server.surveys.yaml import write_yaml
from frankly_server.web import reading
from frankly_server.web.admin.form_page import form_page
from frankly_server.web.admin.forms import choice, field, refuse_unused, require_only, takes, ticked
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.survey_page import OpenedSurvey, asked_block, show, store, survey_view
from frankly_server.web.searching import search_once

_OPEN = "inf"
"""Level in survey files for a side of alip that is not promised."""
_MAX_TOGETHER: Final = 16
_BETA: Final = "0.05"
_NO_ANSWER: Final = "a secret other than the answer itself"
_OF_SECRET: Final = ("notion", "counts", "source", "public", "backstop")
"""Fields for every secret other than the answer."""
_FIELDS: Final = (
    *("seen", "block", "secret", "strength", "unit", "epsilon", "factor", "high", "low", "sample"),
    *("beta", "other", "name", "counts_file", *_OF_SECRET, "mechanism", "objective", "unchanged"),
    *("replace", "ask"),
)


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/protection")
    @survey_view(services, "viewer")
    def protection(survey: OpenedSurvey) -> Response:
        reading.query(("block",))
        if not survey.definition.blocks:
            return form_page(services, survey, "protection")
        return _page(services, survey, asked_block(survey), {})

    @routes.post("/surveys/<survey_id>/protection")
    @survey_view(services, "admin")
    @takes(*_FIELDS, many=("together",))
    def protect_question(survey: OpenedSurvey) -> Response:
        def act() -> str:
            _require_consent(survey)
            refuse_unused(["ask"], {}, "a survey whose questions are one form")
            store(services, survey, protect(survey.draft, field("block"), _wanted(survey)))
            return survey.path(f"margins?block={field('block')}")

        if not survey.definition.blocks:
            return _change_form_level(services, survey)
        return attempt(
            act, lambda refused: _page(services, survey, asked_block(survey), request.form, refused)
        )


def _require_consent(survey: OpenedSurvey) -> None:
    """Raise InvalidInput(unsupported) if saving would remove file-only features unconfirmed."""
    block = _block(survey, asked_block(survey))
    features = unsupported_features(block)
    if features and not ticked("replace"):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the file protects this question with {', '.join(features)}, which this form would "
            "replace: tick the box to allow that, or change the file",
            "replace",
        )


def _block(survey: OpenedSurvey, block_id: str) -> BlockDefinition:
    return next(block for block in survey.definition.blocks if block.id == block_id)


def _change_form_level(services: Services, survey: OpenedSurvey) -> Response:
    def act() -> str:
        require_only("seen", "epsilon", "ask")
        draft = editing.with_form_level(survey.draft, field("epsilon"))
        stands = asks(services.surveys.next_version(survey.definition, survey.id))
        wanted = choice("ask", ("drawn", "all"), stands)
        # An unstated choice stays unstated, so that a copy of the survey makes its own.
        if wanted != stands:
            draft = editing.with_form_ask(draft, wanted)
        store(services, survey, draft)
        return survey.path("margins")

    return attempt(act, lambda refused: form_page(services, survey, "protection", refused=refused))


def _page(
    services: Services,
    survey: OpenedSurvey,
    block_id: str,
    form: Any,
    refused: InvalidInput | None = None,
) -> Response:
    block = _block(survey, block_id)
    rows, unknown = [], ""
    try:
        rows = search_once(
            services, margins_by_level, block, survey.definition.expected_reports, seconds=LEVELS_S
        )
    except InvalidInput as fault:
        unknown = fault.detail  # levels can be chosen without their margins
    partners = _partners(survey, block)
    shown = _shown(survey, block, partners)
    return show(
        "protection.html",
        survey,
        "protection",
        refused,
        block=block_id,
        one=block,
        question=main_question(block),
        others=partners,
        offered=OFFERED,
        # A refused form keeps what was entered.
        form=form or shown,
        is_refused=bool(form),
        strengths=strengths(block, rows),
        has_result=survey.definition.expected_reports >= survey.definition.min_reports,
        unknown=unknown,
        cannot=unsupported_features(block),
        file_text=_as_written(survey, block_id),
        small=small_cells(block),
        by_stratum=survey.definition.strata,
        together=form.getlist("together")
        if form
        else [q.id for q in block.questions if q.id != main_question(block).id],
    )


def _partners(survey: OpenedSurvey, block: BlockDefinition) -> list[QuestionDefinition]:
    """Return the questions that can be a block's secret, or be randomised with its main question."""
    main = main_question(block)
    alone = [
        other.questions[0]
        for other in survey.definition.blocks
        if other.id != block.id and len(other.questions) == 1
    ]
    return [question for question in block.questions if question.id != main.id] + alone


def _shown(
    survey: OpenedSurvey, block: BlockDefinition, partners: Sequence[QuestionDefinition]
) -> dict[str, str]:
    """Return the values with which the page shows the fields of the form."""
    prior, robust, kind = block.prior, block.robust, _secret(block, partners)
    low, high = _sides(block)
    stored_notion = "alip" if block.notion in ONE_SIDED else block.notion
    asked = [question.id for question in partners]
    return {
        "secret": kind,
        "strength": block.epsilon if block.epsilon in LEVELS else "other",
        "unit": "epsilon",
        "epsilon": block.epsilon or "1",
        "factor": "3",
        "notion": stored_notion if stored_notion not in (None, "ldp") else "lip",
        "high": high,
        "low": low,
        "sample": str(robust.n) if robust else "",
        "beta": str(robust.beta) if robust else _BETA,
        # A list without a chosen entry shows its first one.
        "other": (prior.secret if prior and prior.secret in asked else next(iter(asked), "")) or "",
        "name": (prior.secret if prior and kind == "attribute" else "") or "",
        "counts": _counts_text(survey, block),
        "source": prior.source if prior else "",
        "public": "yes" if prior and prior.public else "",
        "backstop": "yes" if prior is None or block.ceiling_cap else "",
        "mechanism": block.mechanism,
        "objective": block.objective,
        "unchanged": "yes" if block.accept_identity else "",
    }


def _require_used(survey: OpenedSurvey, block: BlockDefinition) -> None:
    """Raise InvalidInput(unsupported) for a field that was filled in beside the choices made."""
    shown = _shown(survey, block, _partners(survey, block))
    kind = choice("secret", ("answer", "question", "attribute"), "answer")
    notion = field("notion") or "lip" if kind != "answer" else ""
    unit = choice("unit", ("epsilon", "factor"), "epsilon")
    is_typed = field("strength") in ("", "other")
    has_level = notion != "alip"
    upload = request.files.get("counts_file")
    # Browsers always send a notion, and send no box that is not ticked.
    if kind == "answer" and shown["backstop"] and field("notion") and not ticked("backstop"):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the backstop is unticked, but counts only with {_NO_ANSWER}: choose that, or tick it",
            "backstop",
        )
    if upload and upload.filename:
        if kind == "answer":
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"a file is chosen, but counts only with {_NO_ANSWER}: choose that, or no file",
                "counts_file",
            )
        refuse_unused(["counts"], shown, "no file of counts")
    for is_used, names, use in (
        (kind != "answer", _OF_SECRET, _NO_ANSWER),
        (kind == "question", ("other",), "another question's answer as the secret"),
        (kind == "attribute", ("name",), "something that is not asked as the secret"),
        (notion == "alip", ("high", "low"), f"{_NO_ANSWER}, and with the choice above it (ALIP)"),
        (notion == "rldp", ("sample", "beta"), f"{_NO_ANSWER}, and with Robust LDP"),
        (has_level or is_typed, ("strength",), "a promise of one level (not ALIP)"),
        (is_typed or not has_level, ("unit",), "“Another level”"),
        (
            is_typed and has_level and unit == "epsilon",
            ("epsilon",),
            "“Another level”, as a level ε",
        ),
        (is_typed and has_level and unit == "factor", ("factor",), "“Another level”, as a factor"),
    ):
        if not is_used:
            refuse_unused(names, shown, use)


def _as_written(survey: OpenedSurvey, block_id: str) -> str:
    """Return the block's protection in the form of the file, without its questions."""
    block = editing.block_of(survey.draft, block_id)
    return write_yaml(
        {name: value for name, value in block.items() if name not in ("id", "questions")}
    ).decode()


def _sides(block: BlockDefinition) -> tuple[str, str]:
    """Return the lower and the upper level of alip for the form; "" for a side without a level."""
    if block.notion in ONE_SIDED:
        level = block.epsilon or ""
        return ("", level) if block.notion == "pml" else (level, "")
    low, high = (
        "" if side in (None, "inf") else str(side)
        for side in (block.epsilon_low, block.epsilon_high)
    )
    return low, high


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


def _secret(block: BlockDefinition, others: Any) -> str:
    """Return the kind of the block's secret in the form: answer, question or attribute."""
    if block.prior is None or block.prior.secret is None:
        return "answer"
    return "question" if block.prior.secret in [question.id for question in others] else "attribute"


def _wanted(survey: OpenedSurvey) -> Protection:
    block, kind = _block(survey, asked_block(survey)), field("secret")
    _require_used(survey, block)
    together = request.form.getlist("together")
    if len(together) > _MAX_TOGETHER:
        raise InvalidInput(
            Problem.UNSUPPORTED, f"select at most {_MAX_TOGETHER} questions", "together"
        )
    # If the secret is the answer itself, no counts are needed.
    is_direct = kind not in ("question", "attribute")
    direct = Protection(
        {"epsilon": _nats("epsilon", "factor")} if is_direct else _levels(block),
        mechanism=field("mechanism") or "optimal",
        objective=field("objective") or "variance",
        accept_identity=ticked("unchanged"),
        together=tuple(together),
    )
    if is_direct:
        return direct
    upload = request.files.get("counts_file")
    data = (
        # One byte more than allowed, so that `read_counts` detects a file that is too large.
        upload.read(MAX_BYTES + 1)
        if upload and upload.filename
        else request.form.get("counts", "").encode()
    )
    partner = field("other") if kind == "question" else None
    # For rldp, `protect` adds the secret to these questions, and the page then shows it among them;
    # otherwise it refuses the secret here.
    is_added = field("notion") == "rldp" or partner in [question.id for question in block.questions]
    return replace(
        direct,
        together=tuple(name for name in together if name != partner or not is_added),
        secret=None if kind == "question" else field("name") or kind,
        other=partner,
        counts=read_counts(data, public_questions(survey.draft.get("strata"))),
        source=field("source"),
        public=ticked("public"),
        backstop=BACKSTOP if ticked("backstop") else None,
    )


def _levels(block: BlockDefinition) -> dict[str, Any]:
    """Return the form's notion for a secret with its levels, in the form of survey files.

    A one-sided notion that the block calls pml or pmc keeps that name.
    """
    notion = field("notion") or "lip"
    if notion == "alip":
        low, high = _side("low"), _side("high")
        by_name = {"pml": (low, high), "pmc": (high, low)}.get(block.notion or "")
        if by_name is not None and by_name[0] == _OPEN != by_name[1]:
            return {"notion": block.notion, "epsilon": by_name[1]}
        return {"notion": notion, "epsilon_low": low, "epsilon_high": high}
    levels: dict[str, Any] = {"notion": notion, "epsilon": _nats("epsilon", "factor")}
    if notion == "rldp":
        beta = field("beta") or _BETA
        levels["robust"] = {"order": "2", "n": field("sample"), "beta": beta}
    return levels


def _nats(nats: str, factor: str) -> str:
    """Return a level in nats: the chosen strength, or the field of the form's chosen unit."""
    if field("strength") not in ("", "other"):
        return field("strength")
    return (
        editing.nats_of_factor(field(factor), factor) if field("unit") == "factor" else field(nats)
    )


def _side(name: str) -> str:
    """Return the level of one side of alip in nats; "inf" (no promise) for an empty field."""
    if not field(name):
        return _OPEN
    return editing.nats_of_factor(field(name), name) if field("unit") == "factor" else field(name)
