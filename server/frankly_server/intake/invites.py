# SPDX-License-Identifier: Apache-2.0
"""Invites: random tokens that this server creates for a survey, each valid for one report."""

import hashlib
import secrets
from dataclasses import dataclass

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust.invite_codes import new_code, token_of_code
from frankly_protocol.trust.tokens import INVITE_BYTES, encode_token

from frankly_server.store import Database, Record, unrecorded

MAX_INVITES = 100_000  # a request creates them in memory and inserts them in one transaction


@dataclass(frozen=True, slots=True)
class InviteCounts:
    """The numbers of a survey's invites: made and not revoked, and used."""

    made: int
    used: int


class Invites:
    """Service that creates and revokes invites. They are returned once; only hashes are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(
        self, survey: str, count: int, record: Record = unrecorded, *, codes: bool = False
    ) -> list[str]:
        """Return `count` new tokens for the survey with this name or id.

        codes : make invite codes, which people can type, instead of tokens for programs. record :
        writes the event.
        Raises InvalidInput: survey_unknown, or field_type if count is not in 1 … MAX_INVITES.
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
            written = [new_code() for _ in range(count if codes else 0)]
            tokens = (
                [token_of_code(code, row.id) for code in written]
                if codes
                else [secrets.token_bytes(INVITE_BYTES) for _ in range(count)]
            )
            # Only hashes are stored, so that a copy of the database contains no usable token.
            tx.tokens.add(row.id, [hashlib.sha256(token).hexdigest() for token in tokens])
            record(tx)
        return written if codes else [encode_token(token) for token in tokens]

    def counts(self, survey_id: str) -> InviteCounts:
        """Return the numbers of a survey's invites."""
        with self._database.reading("count invites") as tx:
            return InviteCounts(*tx.tokens.counts(survey_id))

    def revoke(self, survey_id: str, code: str | None, record: Record = unrecorded) -> None:
        """Revoke an unused invite, or all unused ones.

        code : the code of one invite, None for all. The result is the same for a used invite and for
        none: otherwise it would tell whether somebody has answered. Raises InvalidInput(token_invalid)
        for a mistyped code.
        """
        token_hash = (
            None if code is None else hashlib.sha256(token_of_code(code, survey_id)).hexdigest()
        )
        with self._database.administering("revoke invites") as tx:
            tx.tokens.revoke(survey_id, token_hash)
            record(tx)
