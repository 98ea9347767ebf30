# SPDX-License-Identifier: Apache-2.0
"""Invites: random tokens that this server creates for a survey, each valid for one report."""

import hashlib
import secrets
from dataclasses import dataclass

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust.invite_codes import new_code, token_of_code
from frankly_protocol.trust.tokens import INVITE_BYTES, encode_token

from frankly_server.store import Database, DocumentRow, Record, unrecorded

MAX_INVITES = 100_000  # a request creates them in memory and inserts them in one transaction


@dataclass(frozen=True, slots=True)
class InviteCounts:
    """The numbers of invites of a survey or a source: made, revoked or not, and used."""

    made: int
    used: int


class Invites:
    """Service that creates and revokes invites. They are returned once; only hashes are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(
        self,
        survey: str,
        count: int,
        record: Record = unrecorded,
        *,
        codes: bool = False,
        source: str = "",
    ) -> list[str]:
        """Return `count` new tokens for the survey with this name or id.

        codes : make invite codes, which people can type, instead of tokens for programs. record :
        writes the event. source : the one that they are for, if the newest version has sources.
        Raises InvalidInput: survey_unknown, field_type if count is not in 1 … MAX_INVITES, or as
        `require_source`.
        """
        if not 1 <= count <= MAX_INVITES:
            raise InvalidInput(
                Problem.FIELD_TYPE, f"make 1 to {MAX_INVITES} invitations at a time", "count"
            )
        with self._database.administering("make invites") as tx:
            row = tx.surveys.by_name(survey) or tx.surveys.get(survey)
            if row is None:
                raise InvalidInput(
                    Problem.SURVEY_UNKNOWN,
                    "no survey has this name or id; `frankly survey list` shows them all",
                    "survey",
                )
            require_source(tx.documents.latest(row.id), source)
            written = [new_code() for _ in range(count if codes else 0)]
            tokens = (
                [token_of_code(code, row.id) for code in written]
                if codes
                else [secrets.token_bytes(INVITE_BYTES) for _ in range(count)]
            )
            # Only hashes are stored, so that a copy of the database contains no usable token.
            tx.tokens.add(row.id, [hashlib.sha256(token).hexdigest() for token in tokens], source)
            record(tx)
        return written if codes else [encode_token(token) for token in tokens]

    def counts(self, survey_id: str) -> dict[str, InviteCounts]:
        """Return the numbers of a survey's invites, by source; "" stands for those without one."""
        with self._database.reading("count invites") as tx:
            found = tx.tokens.counts(survey_id)
        return {source: InviteCounts(*numbers) for source, numbers in found.items()}

    def total(self, survey_id: str) -> InviteCounts:
        """Return the numbers of a survey's invites, of all sources together."""
        every = self.counts(survey_id).values()
        return InviteCounts(sum(one.made for one in every), sum(one.used for one in every))

    def revoke(
        self, survey_id: str, code: str | None, record: Record = unrecorded, source: str = ""
    ) -> None:
        """Revoke an unused invite, or all unused ones of the survey or of a source.

        code : the code of one invite, None for all. The result is the same for a used invite and for
        none: otherwise it would tell whether somebody has answered. Raises InvalidInput(token_invalid)
        for a mistyped code.
        """
        token_hash = (
            None if code is None else hashlib.sha256(token_of_code(code, survey_id)).hexdigest()
        )
        with self._database.administering("revoke invites") as tx:
            tx.tokens.revoke(survey_id, token_hash, source)
            record(tx)


def require_source(newest: DocumentRow | None, source: str) -> None:
    """Raise InvalidInput unless invites can be made for a source of the newest version.

    source : "" if the version has no sources, or none is published. Raises field_missing,
    field_unknown or field_type, with the field `source`.
    """
    rule = None if newest is None else SurveyDocument.from_envelope(newest.envelope).token
    if rule is None or rule.question is None:
        if source:
            raise InvalidInput(
                Problem.FIELD_UNKNOWN, "this survey has no sources: leave this out", "source"
            )
        return
    if source not in rule.invites:
        listed = ", ".join(sorted(rule.invites)) or "none: the tokens of all are an issuer's"
        problem = Problem.FIELD_TYPE if source else Problem.FIELD_MISSING
        raise InvalidInput(problem, f"name the source: {listed}", "source")


def invite_part(source: str, code: str) -> str:
    """Return what a personal link has behind the survey's link."""
    return f"{source_part(source)}&invite={code}"


def source_part(source: str) -> str:
    """Return what the link of a source has behind the survey's link; "" without one."""
    return f"&source={source}" if source else ""
