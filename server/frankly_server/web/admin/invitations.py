# SPDX-License-Identifier: Apache-2.0
"""Invitations page: personal links with codes, as a list, a table for a mail merge, or cards to print."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_design.numeric.lazy import LazyModule
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.intake.invites import InviteCounts, invite_part
from frankly_server.services import Services
from frankly_server.surveys.live import band
from frankly_server.web import actions, reading
from frankly_server.web.admin.forms import choice, field, takes, ticked
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import without_slot
from frankly_server.web.security import person

if TYPE_CHECKING:
    import segno
else:
    segno = LazyModule("segno")

MAX_CARDS: Final = 500
_COLUMNS: Final = ("code", "link")


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    def page(
        survey: OpenedSurvey, refused: InvalidInput | None = None, codes: Sequence[str] = ()
    ) -> Response:
        link, source = survey.summary.link, _source()
        cards = [(code, qr_code(personal_link(link, code, source))) for code in codes if link]
        rows = _rows(services, survey)
        return show(
            "invitations.html",
            survey,
            "invitations",
            refused,
            rows=rows,
            made=sum(row.made for row in rows),
            sources=[(row.id, row.name) for row in rows if row.id and row.is_invited],
            source=next((row.name for row in rows if row.id == source), "") if codes else "",
            cards=cards,
            most=actions.MOST_INVITATIONS,
            most_cards=MAX_CARDS,
            asks=actions.asks_for_invites(services, survey.id),
            form=request.form if refused else {},
        )

    @routes.get("/surveys/<survey_id>/invitations")
    @survey_view(services, "admin")
    def invitations(survey: OpenedSurvey) -> Response:
        return page(survey)

    @routes.post("/surveys/<survey_id>/invitations")
    @survey_view(services, "admin")
    @takes("count", "format", "source")
    def make_invitations(survey: OpenedSurvey) -> Response:
        try:
            as_cards = choice("format", ("csv", "cards"), "csv") == "cards"
            count = _count(MAX_CARDS if as_cards else actions.MOST_INVITATIONS)
            link = actions.require_invites(services, survey)
            # No redirect: only hashes are stored, so only this response can show the codes.
            if not as_cards:
                codes = actions.make_invitations(services, person(), survey, count, _source())
                return _table(survey, link, codes, _source())
            # QR codes for hundreds of cards take seconds. The place is taken first: once made,
            # the invitations have to be shown.
            with without_slot(services.analyses):
                codes = actions.make_invitations(services, person(), survey, count, _source())
                return page(survey, codes=codes)
        except InvalidInput as refused:
            return page(survey, refused)

    @routes.post("/surveys/<survey_id>/invitations/revoke")
    @survey_view(services, "admin")
    @takes("code", "all", "source")
    def revoke_invitations(survey: OpenedSurvey) -> Response:
        return attempt(
            lambda: _revoke(services, survey),
            lambda refused: page(survey, refused),
            survey.path("invitations"),
        )


def _revoke(services: Services, survey: OpenedSurvey) -> None:
    """Revoke the invitation of the form's code, or all unused ones."""
    code, is_all = field("code", 100) or None, ticked("all")
    if (code is None) is not is_all:
        problem = Problem.UNSUPPORTED if is_all else Problem.FIELD_MISSING
        raise InvalidInput(problem, "either type a code, or tick that you mean all", "code")
    actions.revoke_invitations(services, person(), survey, code, _source() if is_all else "")


@dataclass(frozen=True, slots=True)
class _Row:
    """Invitations of a survey, or of one of its sources. id : "" without sources. used : a band."""

    id: str
    name: str
    made: int
    used: str
    is_invited: bool = True


def _rows(services: Services, survey: OpenedSurvey) -> list[_Row]:
    """Return the numbers of invitations, one row for each source of the newest version.

    How many are used is a band, because an exact number would show when a person answers; of a source,
    which can be a few people, none and a few are not told apart. Tokens of earlier versions have a
    row of their own.
    """
    versions = services.surveys.versions(survey.id)
    rule = versions[-1].token if versions else None
    if rule is None or rule.question is None:
        total = services.invites.total(survey.id)
        return [_Row("", "", total.made, band(total.used))]
    counts = services.invites.counts(survey.id)
    gone = [one for name, one in counts.items() if name not in rule.rules]
    question, language = versions[-1].open_questions[rule.question], versions[-1].languages[0]
    rows = [
        _Row(
            choice.id,
            choice.label[language],
            counts.get(choice.id, _NONE).made,
            _used(counts.get(choice.id, _NONE).used),
            choice.id in rule.invites,
        )
        for choice in question.choices
    ]
    if gone:
        made, used = sum(one.made for one in gone), sum(one.used for one in gone)
        rows.append(_Row("", "of earlier versions", made, _used(used)))
    return rows


_NONE: Final = InviteCounts(0, 0)


def _used(n: int) -> str:
    return band(max(n, 1))


def _source() -> str:
    return field("source", 64)


def _count(most: int) -> int:
    count = reading.whole(field("count") or None, "count")
    if count is None or not 1 <= count <= most:
        raise InvalidInput(Problem.FIELD_TYPE, f"write a number from 1 to {most:,}", "count")
    return count


def personal_link(link: str, code: str, source: str = "") -> str:
    """Return a personal link; browsers do not send the fragment, so no server log contains it."""
    return f"{link}{invite_part(source, code)}"


def _table(survey: OpenedSurvey, link: str, codes: Sequence[str], source: str) -> Response:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\r\n")
    rows.writerow(_COLUMNS)
    rows.writerows((code, personal_link(link, code, source)) for code in codes)
    response = Response(text.getvalue(), content_type="text/csv; charset=utf-8")
    name = "-".join(["invitations", survey.id[:8], *([source] if source else [])])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def qr_code(link: str, scale: int = 2, *, fluid: bool = False) -> str:
    """Return a QR code as an SVG element, dark on light in both colour schemes for scanners.

    fluid : True for an element without a size of its own, which the style sheet sets.
    """
    return segno.make(link, error="m").svg_inline(
        scale=scale, dark="#000", light="#fff", svgclass=None, lineclass=None, omitsize=fluid
    )


def qr_file(link: str) -> bytes:
    """Return a QR code as a PNG file, large enough for paper."""
    file = io.BytesIO()
    segno.make(link, error="m").save(file, kind="png", scale=12)
    return file.getvalue()
