# SPDX-License-Identifier: Apache-2.0
"""Hashes of spent and unspent tokens. The report that spent a token is not recorded.

On PostgreSQL the next release rewrites the rows of spent tokens (`releases`). Until then a row's
position in the table may reveal when its token was spent.
"""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Boolean, ColumnElement, String, Table, case, false, func, select, update

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, column, key_column, metadata
from frankly_server.store.upsert import add_new, driver_of

tokens = Table(
    "tokens",
    metadata,
    key_column("survey", HexBytes(16), "the survey the token opens, once"),
    key_column("hash", HexBytes(32), "SHA-256 of the token; the token itself is not stored"),
    column(
        "spent", Boolean, "true once used; the report, the person and the time are not recorded"
    ),
    column("settled", Boolean, "rewritten since it was spent", server_default=false()),
    column("source", String(64), "the source that it is for; empty without", server_default=""),
    column("revoked", Boolean, "never valid again", server_default=false()),
    sqlite_with_rowid=False,  # a rowid would record the order of arrival
)


class TokensTable(TableAccess):
    """The `tokens` table within one transaction.

    A token of an external issuer gets a row when it is spent.
    """

    def add(self, survey: str, hashes: Sequence[str], source: str = "") -> None:
        """Insert new invite tokens of a source sorted by hash, which hides the order of their creation."""
        rows = [
            {"survey": survey, "hash": token_hash, "spent": False, "source": source}
            for token_hash in sorted(hashes)
        ]
        self._insert_all(tokens, rows)

    def spend(self, survey: str, keys: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Mark tokens as spent; return those that existed, were unspent and not revoked.

        keys : hash and source of each token.
        """
        spent = set[tuple[str, str]]()
        # One by one in sorted order: a single UPDATE takes row locks in no fixed order, and two
        # requests with the same tokens could deadlock.
        for token_hash, source in sorted(set(keys)):
            unspent = (
                (tokens.c.survey == survey)
                & (tokens.c.hash == token_hash)
                & tokens.c.spent.is_(False)
                & tokens.c.revoked.is_(False)
                & (tokens.c.source == source)
            )
            change = update(tokens).where(unspent).values(spent=True)
            if self._connection.execute(change).rowcount:
                spent.add((token_hash, source))
        return spent

    def give_back(self, survey: str, hashes: Iterable[str]) -> None:
        """Undo what `spend` did in this transaction."""
        own = (tokens.c.survey == survey) & tokens.c.hash.in_(sorted(hashes))
        self._connection.execute(update(tokens).where(own).values(spent=False))

    def forget(self, survey: str, hashes: Iterable[str]) -> None:
        """Undo what `spend_new` did in this transaction."""
        self._delete(tokens, (tokens.c.survey == survey) & tokens.c.hash.in_(sorted(hashes)))

    def spend_new(self, survey: str, sources: Mapping[str, str]) -> set[str]:
        """Insert verified tokens of an external issuer as spent; sources : source of each hash.

        Returns the hashes that were new.
        """
        rows = [
            {"survey": survey, "hash": token_hash, "spent": True, "source": source}
            for token_hash, source in sorted(sources.items())
        ]
        return set(add_new(*driver_of(self._connection), tokens, rows, "hash"))

    def counts(self, survey: str) -> dict[str, tuple[int, int]]:
        """Return how many tokens a survey has and how many of them are spent, by source."""
        spent = func.coalesce(func.sum(case((tokens.c.spent, 1), else_=0)), 0)
        query = (
            select(tokens.c.source, func.count(), spent)
            .where(tokens.c.survey == survey)
            .group_by(tokens.c.source)
        )
        rows = self._connection.execute(query)
        return {source: (int(made), int(used)) for source, made, used in rows}

    def revoke(self, survey: str, token_hash: str | None, source: str = "") -> int:
        """Revoke an unspent token, or every unspent one of a survey or a source; return how many there were.

        The rows stay: their number must not tell which were unspent.
        """
        condition = (tokens.c.survey == survey) & tokens.c.spent.is_(False)
        if token_hash is not None:
            condition &= tokens.c.hash == token_hash
        if source:
            condition &= tokens.c.source == source
        change = update(tokens).where(condition & tokens.c.revoked.is_(False)).values(revoked=True)
        return self._connection.execute(change).rowcount

    def known(self, survey: str, hashes: Iterable[str]) -> dict[str, str]:
        """Return the source of each hash that belongs to this survey and is not revoked, spent or not."""
        return self._among(hashes, tokens.c.survey == survey)

    def of_other_surveys(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Return the hashes that belong to another survey."""
        return set(self._among(hashes, tokens.c.survey != survey))

    def _among(self, hashes: Iterable[str], condition: ColumnElement[bool]) -> dict[str, str]:
        query = select(tokens.c.hash, tokens.c.source)
        valid = tokens.c.revoked.is_(False) & tokens.c.hash.in_(list(hashes))
        rows = self._connection.execute(query.where(condition, valid))
        return dict(map(tuple, rows))
