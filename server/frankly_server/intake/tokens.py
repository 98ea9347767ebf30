# SPDX-License-Identifier: Apache-2.0
"""Tokens at the door: invites are made here, and every token is spent in the transaction that keeps its report.

What whoever runs the server could link: he makes the invites, so a list of who got which, kept on the side, and a look
at requests as they come in, link a person to a noisy report. Nothing stored does, once a release has written report
and token anew; until then their rows may (docs/privacy.md). Tokens of an outside issuer (blind
signatures) cannot be linked to a person even so, unless issuer and server are one.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import INVITE_BYTES, TokenVerifier, encode_token, token_verifier

from frankly_server.store import Database, Transaction

MAX_INVITES = 100_000


@dataclass(frozen=True, slots=True)
class Spend:
    """A token to be spent: its hash, and whether it must have been handed out here before (an invite)."""

    hash: str = field(repr=False)
    invited: bool


@dataclass(frozen=True, slots=True)
class TokenDoor:
    """The token rule of one document: None of `verifier` means that reports carry no token."""

    verifier: TokenVerifier | None
    invited: bool

    @classmethod
    def of(cls, rule: TokenRule | None) -> "TokenDoor":
        """Return the door for a rule; raises InvalidInput(token_invalid) for an issuer's key that cannot be used."""
        if rule is None:
            return cls(None, invited=False)
        return cls(token_verifier(rule), invited=rule.kind == "invite")

    def spend(self, survey: str, token: str | None) -> Spend | None:
        """Return what a report's token would spend, None if none is asked for; raises InvalidInput(token_invalid)."""
        if self.verifier is None:
            if token is not None:
                raise InvalidInput(Problem.TOKEN_INVALID, "this survey takes no token: send null", "token")
            return None
        if token is None:
            raise InvalidInput(Problem.TOKEN_INVALID, "this survey needs the token you were given", "token")
        return Spend(self.verifier.spend_hash(survey, token), self.invited)


class Invites:
    """Makes invite tokens; they are shown once, and only their hashes are kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(self, survey: str, count: int) -> list[str]:
        """Return so many new tokens for a survey; raises InvalidInput: survey_unknown, or field_type for the count."""
        if not 1 <= count <= MAX_INVITES:
            raise InvalidInput(Problem.FIELD_TYPE, f"make 1 to {MAX_INVITES} tokens at a time", "count")
        raw = [secrets.token_bytes(INVITE_BYTES) for _ in range(count)]
        with self._database.transaction("make invites") as tx:
            row = tx.surveys.by_name(survey) or tx.surveys.get(survey)
            if row is None:
                words = "no survey has this name or id; `frankly survey list` shows them all"
                raise InvalidInput(Problem.SURVEY_UNKNOWN, words, "survey")
            tx.tokens.add(row.id, [hashlib.sha256(token).hexdigest() for token in raw])
        return [encode_token(token) for token in raw]


def spend_all(tx: Transaction, survey: str, wanted: Sequence[tuple[str, Spend]]) -> dict[str, InvalidInput]:
    """Spend the tokens of (report id, token) pairs; return the ids whose token could not be spent, and why.

    Of several reports with one token the first gets it. Locks are taken in the order of hashes.
    """
    if not wanted:
        return {}
    owners: dict[str, str] = {}
    for report_id, spend in wanted:
        owners.setdefault(spend.hash, report_id)
    fresh = tx.tokens.spend(survey, _hashes(wanted, invited=True))
    fresh |= tx.tokens.spend_new(survey, _hashes(wanted, invited=False))
    refused = [(i, spend) for i, spend in wanted if spend.hash not in fresh or owners[spend.hash] != i]
    if not refused:
        return {}
    hashes = {spend.hash for _, spend in refused}
    known, elsewhere = tx.tokens.known(survey, hashes), tx.tokens.of_other_surveys(survey, hashes)
    return {report_id: _why(spend.hash, known, elsewhere) for report_id, spend in refused}


def _hashes(wanted: Sequence[tuple[str, Spend]], *, invited: bool) -> list[str]:
    return [spend.hash for _, spend in wanted if spend.invited == invited]


def _why(found: str, known: set[str], elsewhere: set[str]) -> InvalidInput:
    if found in known:
        return InvalidInput(Problem.TOKEN_SPENT, "this token has been used: one report each", "token")
    if found in elsewhere:
        return InvalidInput(Problem.TOKEN_FOREIGN, "this token is for another survey", "token")
    return InvalidInput(Problem.TOKEN_INVALID, "the token does not open this survey; use yours", "token")
