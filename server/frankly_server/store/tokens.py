# SPDX-License-Identifier: Apache-2.0
"""Hashes of invite tokens, spent and unspent. The report that spent a token is not recorded.

On PostgreSQL the next release rewrites the rows of spent tokens (`releases`). Until then a row's
position in the table may reveal when its token was spent.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Boolean, Column, Connection, Table, false, insert, select, update

from frankly_server.store.schema import HexBytes, metadata
from frankly_server.store.upsert import add_new, driver_of

tokens = Table(
    "tokens",
    metadata,
    Column("survey", HexBytes(16), primary_key=True, comment="the survey the token opens, once"),
    Column(
        "hash",
        HexBytes(32),
        primary_key=True,
        comment="SHA-256 of the token; the token itself is not kept",
    ),
    Column(
        "spent",
        Boolean,
        nullable=False,
        comment="used; by whom, when and for which report is not kept",
    ),
    Column(
        "settled",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="rewritten since it was spent",
    ),
    sqlite_with_rowid=False,  # a rowid would record the order of arrival
)


class TokensTable:
    """The `tokens` table within one transaction.

    A token of an external issuer gets its row when it is spent.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, survey: str, hashes: Sequence[str]) -> None:
        """Insert new invite tokens sorted by hash, which hides the order in which they were made."""
        rows = [
            {"survey": survey, "hash": token_hash, "spent": False} for token_hash in sorted(hashes)
        ]
        self._connection.execute(insert(tokens), rows)

    def spend(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Mark tokens as spent; return the hashes of those that existed and were unspent."""
        spent = set()
        # One by one in sorted order: a single UPDATE takes its row locks in no fixed order, and two
        # requests with the same tokens could deadlock.
        for token_hash in sorted(set(hashes)):
            unspent = (
                (tokens.c.survey == survey)
                & (tokens.c.hash == token_hash)
                & tokens.c.spent.is_(False)
            )
            change = update(tokens).where(unspent).values(spent=True).returning(tokens.c.hash)
            spent |= set(self._connection.execute(change).scalars())
        return spent

    def spend_new(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Insert verified tokens of an external issuer as spent.

        Returns the hashes that were new.
        """
        rows = [
            {"survey": survey, "hash": token_hash, "spent": True}
            for token_hash in sorted(set(hashes))
        ]
        return set(add_new(*driver_of(self._connection), tokens, rows, "hash"))

    def known(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Return the hashes that belong to this survey, spent or not."""
        query = select(tokens.c.hash).where(
            tokens.c.survey == survey,
            tokens.c.hash.in_(list(hashes)),
        )
        return set(self._connection.execute(query).scalars())

    def of_other_surveys(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Return the hashes that belong to another survey."""
        query = select(tokens.c.hash).where(
            tokens.c.survey != survey,
            tokens.c.hash.in_(list(hashes)),
        )
        return set(self._connection.execute(query).scalars())
