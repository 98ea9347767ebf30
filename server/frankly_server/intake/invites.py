# SPDX-License-Identifier: Apache-2.0
"""Invites: random tokens that this server makes for a survey, each valid for one report."""

import hashlib
import secrets

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust.tokens import INVITE_BYTES, encode_token

from frankly_server.store import Database

MAX_INVITES = 100_000  # one request makes them in memory and inserts them in one transaction


class Invites:
    """Service that makes invite tokens. They are returned once; only their hashes are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(self, survey: str, count: int) -> list[str]:
        """Return `count` new tokens for the survey with this name or id.

        Raises InvalidInput: survey_unknown, or field_type if count is not in 1 … MAX_INVITES.
        """
        if not 1 <= count <= MAX_INVITES:
            raise InvalidInput(
                Problem.FIELD_TYPE,
                f"make 1 to {MAX_INVITES} tokens at a time",
                "count",
            )
        # Only hashes are stored, so that a copy of the database contains no token that works.
        raw = [secrets.token_bytes(INVITE_BYTES) for _ in range(count)]
        with self._database.administering("make invites") as tx:
            row = tx.surveys.by_name(survey) or tx.surveys.get(survey)
            if row is None:
                message = "no survey has this name or id; `frankly survey list` shows them all"
                raise InvalidInput(Problem.SURVEY_UNKNOWN, message, "survey")
            tx.tokens.add(row.id, [hashlib.sha256(token).hexdigest() for token in raw])
        return [encode_token(token) for token in raw]
