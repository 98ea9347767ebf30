# SPDX-License-Identifier: Apache-2.0
"""Spending of tokens, in the transaction that stores the report.

An operator could link a person to a randomised report: the operator creates the invites, could list
who received which invite, and could watch the requests. After a release has rewritten the rows of
report and token, the stored data do not link them; before that, the order of the rows may
(docs/privacy.md).
Tokens of an external issuer are blind signatures, which do not link a report to a person, even if
issuer and operator cooperate (docs/protocol.md, section 10).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import TokenVerifier, token_verifier

from frankly_server.store import Transaction


@dataclass(frozen=True, slots=True)
class Spend:
    """A token to be spent; invited : True for an invite, whose hash must be stored."""

    hash: str = field(repr=False)
    invited: bool


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """The token rule of one document. verifier : None if reports carry no token."""

    verifier: TokenVerifier | None
    invited: bool

    @classmethod
    def of(cls, rule: TokenRule | None) -> "TokenCheck":
        """Return the check of a token rule; rule : None if reports carry no token.

        Raises InvalidInput(token_invalid) if the issuer's key cannot be used.
        """
        if rule is None:
            return cls(None, invited=False)
        return cls(token_verifier(rule), invited=rule.kind == "invite")

    def spend(self, survey: str, token: str | None) -> Spend | None:
        """Return the token that a report spends, None if the survey needs no tokens.

        Raises InvalidInput(token_invalid).
        """
        if self.verifier is None:
            if token is not None:
                raise InvalidInput(
                    Problem.TOKEN_INVALID, "this survey needs no token: send null", "token"
                )
            return None
        if token is None:
            raise InvalidInput(
                Problem.TOKEN_INVALID, "this survey needs the token you were given", "token"
            )
        return Spend(self.verifier.spend_hash(survey, token), self.invited)


def spend_all(
    tx: Transaction, survey: str, spends: Sequence[tuple[str, Spend]]
) -> dict[str, InvalidInput]:
    """Spend the tokens of (report id, token) pairs; return the refusals by report id.

    If several reports carry the same token, the first one spends it. Locks are taken in the order
    of the hashes.
    """
    if not spends:
        return {}
    owners: dict[str, str] = {}
    for report_id, spend in spends:
        owners.setdefault(spend.hash, report_id)
    # An invite must already be in the table. A token of an external issuer is verified by its
    # signature and gets its row now.
    fresh = tx.tokens.spend(survey, _hashes(spends, invited=True))
    fresh |= tx.tokens.spend_new(survey, _hashes(spends, invited=False))
    refused = [
        (i, spend) for i, spend in spends if spend.hash not in fresh or owners[spend.hash] != i
    ]
    if not refused:
        return {}  # the common case, without further queries
    hashes = {spend.hash for _, spend in refused}
    spent, foreign = tx.tokens.known(survey, hashes), tx.tokens.of_other_surveys(survey, hashes)
    return {report_id: _refusal(spend.hash, spent, foreign) for report_id, spend in refused}


def _hashes(spends: Sequence[tuple[str, Spend]], *, invited: bool) -> list[str]:
    return [spend.hash for _, spend in spends if spend.invited == invited]


def _refusal(token_hash: str, spent: set[str], foreign: set[str]) -> InvalidInput:
    if token_hash in spent:
        return InvalidInput(
            Problem.TOKEN_SPENT,
            "this token has been used already; each is valid for one report",
            "token",
        )
    if token_hash in foreign:
        return InvalidInput(Problem.TOKEN_FOREIGN, "this token is for another survey", "token")
    return InvalidInput(
        Problem.TOKEN_INVALID,
        "the token is not valid for this survey; use the one that you were given",
        "token",
    )
