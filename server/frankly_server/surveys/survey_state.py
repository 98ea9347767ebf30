# SPDX-License-Identifier: Apache-2.0
"""Whose a survey is and what state it is in: draft, scheduled, live, paused, closed, archived.

Published documents never change; the state is the server's word beside them, which intake asks inside the transaction
that would keep a report (`frankly_server.intake.gate`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.store import Database
from frankly_server.store.standings import MAIN, StandingRow
from frankly_server.surveys.surveys import Summary

MOVES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "pause": (("open",), "paused"),
    "resume": (("paused",), "open"),
    "close": (("open", "paused"), "closed"),
    "archive": (("closed",), "archived"),
}
"""By name: from which states, to which. Closed surveys stay closed: publish a new one instead."""


class Lifecycle:
    """Organisations, states and stop rules of surveys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def standing(self, survey_id: str) -> StandingRow:
        """Return a survey's organisation, state and stop rule."""
        with self._database.reading("survey standing") as tx:
            return tx.standings.get(survey_id)

    def every(self) -> Mapping[str, StandingRow]:
        """Return the standings by survey id of all surveys that have one."""
        with self._database.reading("survey standings") as tx:
            return tx.standings.every()

    def states(self, summaries: Iterable[Summary]) -> Mapping[str, str]:
        """Return by survey id one word for where each is; see `shown_state`."""
        known = self.every()
        return {found.survey_id: shown_state(found, known.get(found.survey_id, StandingRow())) for found in summaries}

    def require(self, survey_id: str, organisation: str) -> StandingRow:
        """Return the standing of an organisation's survey.

        Raises InvalidInput(survey_unknown) for another organisation's as for one that does not exist.
        """
        with self._database.reading("survey standing") as tx:
            found = tx.standings.get(survey_id)
            if tx.surveys.get(survey_id) is None or found.organisation != organisation:
                raise InvalidInput(Problem.SURVEY_UNKNOWN, "there is no such survey", "survey")
        return found

    def adopt(self, survey_id: str, organisation: str) -> None:
        """Give a survey that was just made to an organisation."""
        if organisation != MAIN:
            with self._database.transaction("adopt survey") as tx:
                tx.standings.put(survey_id, replace(tx.standings.get(survey_id), organisation=organisation))

    def move(self, survey_id: str, how: str) -> str:
        """Pause, resume, close or archive a published survey; return the new state.

        Raises InvalidInput: not_found for another word, immutable where the state does not allow it.
        """
        if how not in MOVES:
            raise InvalidInput(Problem.NOT_FOUND, f"one of {', '.join(MOVES)}", "move")
        sources, target = MOVES[how]
        with self._database.transaction("move survey") as tx:
            found = tx.standings.get(survey_id)
            published = tx.documents.latest(survey_id) is not None
            # A draft that nobody will publish can be put away.
            if found.state not in sources and not (how == "archive" and not published and found.state != target):
                raise InvalidInput(Problem.IMMUTABLE, f"a survey that is {found.state} cannot do this", "move")
            if not published and how != "archive":
                raise InvalidInput(Problem.IMMUTABLE, "publish the survey first", "move")
            tx.standings.put(survey_id, replace(found, state=target))
        return target

    def stop_at(self, survey_id: str, reports: int | None, margin: str | None = None) -> None:
        """Close the survey by itself at so many reports, or never for None; margin is where the number comes from."""
        if reports is not None and not 1 <= reports <= 10**9:
            raise InvalidInput(Problem.FIELD_TYPE, "write a whole number of reports, at least 1", "reports")
        with self._database.transaction("set stop rule") as tx:
            found = tx.standings.get(survey_id)
            tx.standings.put(survey_id, replace(found, stop_reports=reports, stop_margin=margin))


def shown_state(summary: Summary, standing: StandingRow) -> str:
    """Return one word: draft, scheduled, live, paused, closed or archived."""
    if standing.state == "archived":
        return "archived"
    if summary.version == 0:
        return "draft"
    if standing.state == "closed" or summary.state == "closed":
        return "closed"
    if standing.state == "paused":
        return "paused"
    return "live" if summary.state == "open" else summary.state
