# SPDX-License-Identifier: Apache-2.0
"""Owner, state and stop rule of each survey.

Pages show a survey as draft, scheduled, live, paused, closed or archived. The stored state (open,
paused, closed or archived) is not part of the published documents. The statement that inserts
reports checks the state (`frankly_server.store.reports`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.store import Database, Record, unrecorded
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys.obstacles import require_changeable
from frankly_server.surveys.surveys import Summary

MOVES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "pause": (("open",), "paused"),
    "resume": (("paused",), "open"),
    "close": (("open", "paused"), "closed"),
    "archive": (("closed",), "archived"),
}
"""Move → (states that allow the move, new state). Closed surveys stay closed."""


class Lifecycle:
    """Organisations, states and stop rules of surveys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, survey_id: str) -> SurveyStateRow:
        """Return a survey's organisation, state and stop rule."""
        with self._database.reading("survey state") as tx:
            return tx.survey_states.get(survey_id)

    def every(self) -> Mapping[str, SurveyStateRow]:
        """Return the stored states by survey id; all other surveys are open."""
        with self._database.reading("survey state") as tx:
            return tx.survey_states.every()

    def states(self, summaries: Iterable[Summary]) -> Mapping[str, str]:
        """Return the state of each survey by its id; see `shown_state`."""
        state_rows = self.every()
        return {
            summary.survey_id: shown_state(
                summary, state_rows.get(summary.survey_id, SurveyStateRow())
            )
            for summary in summaries
        }

    def require(self, survey_id: str, organisation: str) -> SurveyStateRow:
        """Return the state of an organisation's survey.

        Raises InvalidInput(survey_unknown) for unknown surveys and for those of other
        organisations.
        """
        with self._database.reading("survey state") as tx:
            state_row = tx.survey_states.get(survey_id)
            if tx.surveys.get(survey_id) is None or state_row.organisation != organisation:
                raise InvalidInput(Problem.SURVEY_UNKNOWN, "there is no such survey", "survey")
        return state_row

    def move(
        self,
        survey_id: str,
        move: str,
        recorder: Callable[[str], Record] = lambda _: unrecorded,
        *,
        is_over: bool = False,
    ) -> str:
        """Pause, resume, close or archive a survey; return the new state.

        A draft can only be archived. recorder : function from the new state to the writer of the
        event. is_over : True if the survey's last moment has passed, so that it can be archived; it is
        closed first. Raises InvalidInput: not_found for an unknown move, immutable if the state does not
        allow the move.
        """
        if move not in MOVES:
            raise InvalidInput(Problem.NOT_FOUND, f"the moves are {', '.join(MOVES)}", "move")
        allowed_states, new_state = MOVES[move]
        with self._database.administering("move survey") as tx:
            state_row = tx.survey_states.get(survey_id)
            published = tx.documents.latest(survey_id) is not None
            if move == "archive" and is_over and state_row.state in MOVES["close"][0]:
                recorder("closed")(tx)
                state_row = replace(state_row, state="closed")
            # Drafts may be archived in any other state. All other moves need a published version.
            if state_row.state not in allowed_states and not (
                move == "archive" and not published and state_row.state != new_state
            ):
                raise InvalidInput(
                    Problem.IMMUTABLE,
                    f"this is not possible for a survey that is {state_row.state}",
                    "move",
                )
            if not published and move != "archive":
                raise InvalidInput(Problem.IMMUTABLE, "publish the survey first", "move")
            tx.survey_states.put(survey_id, replace(state_row, state=new_state))
            recorder(new_state)(tx)
        return new_state

    def stop_at(
        self,
        survey_id: str,
        reports: int | None,
        margin: str | None = None,
        record: Record = unrecorded,
    ) -> None:
        """Set the number of reports at which the survey closes itself; None for never.

        margin : the margin of error from which the number was computed, for display. Raises
        InvalidInput: field_type unless the number is 1 to 10⁹, immutable for an archived survey.
        """
        if reports is not None and not 1 <= reports <= 10**9:
            raise InvalidInput(
                Problem.FIELD_TYPE, "write a whole number of reports, at least 1", "reports"
            )
        with self._database.administering("set stop rule") as tx:
            require_changeable(tx, survey_id)
            state_row = tx.survey_states.get(survey_id)
            tx.survey_states.put(
                survey_id, replace(state_row, stop_reports=reports, stop_margin=margin)
            )
            record(tx)


def shown_state(summary: Summary, state_row: SurveyStateRow) -> str:
    """Return draft, scheduled, live, paused, closed or archived."""
    # The server's state takes precedence over the times of the document.
    if state_row.state == "archived":
        return "archived"
    if summary.version == 0:
        return "draft"
    if state_row.state == "closed" or summary.state == "closed":
        return "closed"
    if state_row.state == "paused":
        return "paused"
    return "live" if summary.state == "open" else summary.state
