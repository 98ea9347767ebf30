# SPDX-License-Identifier: Apache-2.0
"""Spending of tokens, in the transaction that stores the report.

An operator could link a person to a randomised report: the operator creates the invites, could list
who received which invite, and could watch the requests. After a release has rewritten the rows of
report and token, the stored data do not link them; before that, the order of the rows may
(docs/privacy.md).
Tokens of an external issuer are blind signatures, which do not link a report to a person, even if
issuer and operator cooperate (docs/protocol.md, section 10).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import TokenVerifier, token_verifier

from frankly_server.store import Transaction


@dataclass(frozen=True, slots=True)
class Spend:
    """A token to be spent; invited : True for an invite, whose hash must be stored with its source."""

    hash: str = field(repr=False)
    invited: bool
    source: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Hash and source: a token counts for its own source only."""
        return self.hash, self.source


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """The token rule of one document, or of one source. verifier : None if reports carry no token.

    sources : the public question that names a report's source, and the check of each; None without.
    """

    verifier: TokenVerifier | None
    invited: bool
    source: str = ""
    sources: tuple[str, Mapping[str, "TokenCheck"]] | None = None

    @classmethod
    def of(cls, rule: TokenRule | None, source: str = "") -> "TokenCheck":
        """Return the check of a token rule; rule : None if reports carry no token.

        Raises InvalidInput(token_invalid) if an issuer's key cannot be used.
        """
        if rule is None:
            return cls(None, invited=False)
        if rule.question is not None:
            checks = {name: cls.of(one, name) for name, one in rule.rules.items()}
            return cls(None, invited=False, sources=(rule.question, checks))
        return cls(token_verifier(rule), rule.kind == "invite", source)

    def spend(self, survey: str, token: str | None, strata: Mapping[str, str]) -> Spend | None:
        """Return the token that a report spends, None if the survey needs no tokens.

        strata : the report's public answers, of which each is a choice of its question. Raises
        InvalidInput(token_invalid).
        """
        if self.sources is not None:
            question, checks = self.sources
            return checks[strata[question]].spend(survey, token, strata)
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
        return Spend(self.verifier.spend_hash(survey, token), self.invited, self.source)


def spend_all(
    tx: Transaction, survey: str, spends: Sequence[tuple[str, Spend]]
) -> dict[str, InvalidInput]:
    """Spend the tokens of (report id, token) pairs; return the refusals by report id.

    If several reports carry the same token, the first one spends it. Locks are taken in the order
    of the hashes.
    """
    if not spends:
        return {}
    owners: dict[tuple[str, str], str] = {}
    for report_id, spend in spends:
        owners.setdefault(spend.key, report_id)
    # An invite must already be in the table, for its source. A token of an external issuer is
    # verified by its signature and gets its row now.
    fresh = tx.tokens.spend(survey, {spend.key for _, spend in spends if spend.invited})
    new: dict[str, str] = {}
    for _, spend in spends:
        if not spend.invited:
            new.setdefault(spend.hash, spend.source)
    fresh |= {(one, new[one]) for one in tx.tokens.spend_new(survey, new)}
    refused = [
        (i, spend) for i, spend in spends if spend.key not in fresh or owners[spend.key] != i
    ]
    if not refused:
        return {}  # the common case, without further queries
    hashes = {spend.hash for _, spend in refused}
    own, foreign = tx.tokens.known(survey, hashes), tx.tokens.of_other_surveys(survey, hashes)
    return {report_id: _refusal(spend, own, foreign) for report_id, spend in refused}


def _refusal(spend: Spend, own: Mapping[str, str], foreign: set[str]) -> InvalidInput:
    """Return why a token was not spent. own : source of each token of the survey."""
    if spend.hash in own and own[spend.hash] != spend.source:
        return InvalidInput(
            Problem.TOKEN_FOREIGN, "this token is for another source of this survey", "token"
        )
    if spend.hash in own:
        return InvalidInput(
            Problem.TOKEN_SPENT,
            "this token has been used already; each is valid for one report",
            "token",
        )
    if spend.hash in foreign:
        return InvalidInput(Problem.TOKEN_FOREIGN, "this token is for another survey", "token")
    return InvalidInput(
        Problem.TOKEN_INVALID,
        "the token is not valid for this survey; use the one that you were given",
        "token",
    )
