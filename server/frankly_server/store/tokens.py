# SPDX-License-Identifier: Apache-2.0
"""Invite tokens, as hashes: handed out, then spent; which report spent one is written nowhere.

A token that was spent is written anew by the next release (`releases`): until then its row may tell when it was spent.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, insert, select, update

from frankly_server.store.schema import tokens
from frankly_server.store.upsert import add_new, driver_of


class Tokens:
    """The `tokens` table within one transaction. A token of an outside issuer gets its row when it is spent."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, survey: str, hashes: Sequence[str]) -> None:
        """Enter new invite tokens, in the order of their hashes: the order of making is not kept."""
        rows = [{"survey": survey, "hash": found, "spent": False} for found in sorted(hashes)]
        self._connection.execute(insert(tokens), rows)

    def spend(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Mark tokens as spent; return those that were there and unspent. Locks are taken in the order of hashes."""
        fresh = set()
        for found in sorted(set(hashes)):
            same = (tokens.c.survey == survey) & (tokens.c.hash == found) & tokens.c.spent.is_(False)
            done = update(tokens).where(same).values(spent=True).returning(tokens.c.hash)
            fresh |= set(self._connection.execute(done).scalars())
        return fresh

    def spend_new(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Enter verified tokens of an outside issuer as spent; return those that had not been."""
        rows = [{"survey": survey, "hash": found, "spent": True} for found in sorted(set(hashes))]
        return set(add_new(*driver_of(self._connection), tokens, rows, "hash"))

    def known(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Return which of these tokens this survey has, spent or not."""
        found = select(tokens.c.hash).where(tokens.c.survey == survey, tokens.c.hash.in_(list(hashes)))
        return set(self._connection.execute(found).scalars())

    def of_other_surveys(self, survey: str, hashes: Iterable[str]) -> set[str]:
        """Return which of these tokens open another survey."""
        found = select(tokens.c.hash).where(tokens.c.survey != survey, tokens.c.hash.in_(list(hashes)))
        return set(self._connection.execute(found).scalars())
