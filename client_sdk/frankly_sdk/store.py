# SPDX-License-Identifier: Apache-2.0
"""The store of one install: keys, documents, log heads, evidence, sealed answers and costs.

The store never contains a true answer to a protected question.

Keys, documents, log heads, proofs, evidence and answers are stored per chain of keys, named by its
first root: a server with other keys cannot change what was stored for this chain. A respondent's
costs are added up over all chains, and one salt serves all of them.
"""

import hmac
import secrets
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from frankly_protocol.audit import Charge, total_charge
from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.mechanisms.base import draw
from frankly_protocol.trust import KnownKeys

from frankly_sdk._database import Database
from frankly_sdk._tables import UNKNOWN_CHAIN
from frankly_sdk._trusted import Remembered
from frankly_sdk.errors import StoreError

_SEALED = "chain, survey, respondent, digest, collect_url, report_id, body, state, code, closes"
_T = TypeVar("_T")
_MAX_EVIDENCE = 16  # maximum per chain: enough to prove a contradiction, too little to fill a disk


@dataclass(frozen=True, slots=True)
class LogHead:
    """A log's head: the log's name, its number of entries, and the signed note with both."""

    origin: str
    size: int
    note: bytes


@dataclass(frozen=True, slots=True)
class Sealed:
    """One respondent's answer to a survey.

    body : the exact bytes to send while `state` is ``sealed``, afterwards None.
    chain : name of the chain of the survey's keys, empty for answers of earlier store versions.
    respondent : the result of `Store.respondent_name`, empty for the owner of the install.
    digest : digest of the document that was answered.
    state : ``sealed``, ``sent`` or ``refused``.
    code : the reason for this state, as in a receipt; empty while sealed.
    closes : time at which the survey closes by its document; None for answers of earlier store
        versions.
    """

    chain: str
    survey: str
    respondent: str = field(repr=False)
    digest: str
    collect_url: str
    report_id: str = field(repr=False)
    body: bytes | None = field(repr=False)
    state: str = "sealed"
    code: str = ""
    closes: str | None = None


class Store:
    """One store file.

    Safe to use from several threads and after a fork; several processes may open the same file.

    Raises StoreError, from every method, if the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def transaction(self) -> AbstractContextManager[None]:
        """Hold the write lock of this file; commit durably at the end, roll back on any error."""
        return self._database.transaction()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def alias_keys(self, alias: str) -> KnownKeys | None:
        """Return the newest keys of an alias's chain, or None if the alias is unknown.

        An alias is an origin, with the digest of the keys document if the app ships one.
        """
        return self._first(
            KnownKeys,
            "SELECT envelope, chain FROM aliases JOIN keys USING (chain) WHERE alias = ?",
            alias,
        )

    def keys(self, chain: str) -> KnownKeys | None:
        """Return the newest accepted keys of a chain, under any alias."""
        return self._first(KnownKeys, "SELECT envelope, chain FROM keys WHERE chain = ?", chain)

    def remember_keys(self, alias: str, keys: KnownKeys) -> None:
        """Store accepted keys under an alias and their chain.

        Call it inside the `transaction` that checked that they follow the stored ones.
        """
        self._database.run("INSERT OR REPLACE INTO aliases VALUES (?, ?)", alias, keys.chain)
        self._database.run("INSERT OR REPLACE INTO keys VALUES (?, ?)", keys.chain, keys.envelope)

    def survey(self, chain: str, survey: str) -> Remembered | None:
        """Return the document accepted last for a survey, or None if there is none."""
        return self._first(
            Remembered,
            "SELECT version, digest, envelope FROM surveys WHERE chain = ? AND survey = ?",
            *(chain, survey),
        )

    def remember(
        self, chain: str, survey: str, document: Remembered, instead_of: str | None = None
    ) -> None:
        """Store an accepted document.

        A stored version is never replaced by a lower or equal one, unless its digest is
        `instead_of`.

        instead_of : digest of a document whose signing keys have been withdrawn.
        """
        with self.transaction():
            self._database.run(
                "INSERT INTO surveys VALUES (?, ?, ?, ?, ?) ON CONFLICT (chain, survey) DO UPDATE SET"
                " version = excluded.version, digest = excluded.digest, envelope = excluded.envelope"
                " WHERE excluded.version > version OR digest = ?",
                *(chain, survey, document.version, document.digest, document.envelope, instead_of),
            )

    def keep_evidence(self, chain: str, pieces: dict[str, bytes]) -> None:
        """Store signed pieces of evidence for a contradiction, by digest.

        At most 16 pieces are kept per chain; further ones are ignored.
        """
        with self.transaction():
            self._keep_evidence(chain, pieces)

    def _keep_evidence(self, chain: str, pieces: dict[str, bytes]) -> None:
        stored_digests = {
            digest
            for (digest,) in self._database.rows(
                "SELECT digest FROM evidence WHERE chain = ?", chain
            )
        }
        if len(stored_digests | set(pieces)) > _MAX_EVIDENCE:
            return  # stored together or not at all: half of a contradiction proves nothing
        for digest, data in pieces.items():
            self._database.run(
                "INSERT OR IGNORE INTO evidence VALUES (?, ?, ?)", chain, digest, data
            )

    def evidence(self) -> dict[str, bytes]:
        """Return the stored evidence of all chains, by digest."""
        return dict(self._database.rows("SELECT digest, envelope FROM evidence"))

    def checkpoint(self, chain: str, origin: str) -> bytes | None:
        """Return the signed note of a log's newest remembered head, or None if there is none."""
        return self._first(
            bytes, "SELECT note FROM checkpoints WHERE chain = ? AND origin = ?", chain, origin
        )

    def proof(self, chain: str, digest: str) -> bytes | None:
        """Return the log's proof with which a document was accepted last, or None if there is none.

        A proof stored for an unknown chain is returned too, because the caller checks it.
        """
        # The unknown chain is '', which sorts last: the chain's own proof comes first.
        return self._first(
            bytes,
            "SELECT proof FROM proofs WHERE chain IN (?, ?) AND digest = ? ORDER BY chain DESC",
            *(chain, UNKNOWN_CHAIN, digest),
        )

    def remember_log(self, chain: str, head: LogHead, digest: str, proof: bytes) -> str | None:
        """Store a head and a document's proof; a head is never replaced by a smaller one.

        If this is the first head under a new log name, the old head is stored as evidence too, and
        the log's old name is returned; otherwise None.
        """
        with self.transaction():
            heads = self._database.rows(
                "SELECT origin, note FROM checkpoints WHERE chain = ? ORDER BY rowid", chain
            )
            is_renamed = bool(heads) and head.origin not in dict(heads)
            if is_renamed:
                self._keep_evidence(chain, {digest_of(heads[-1][1]): heads[-1][1]})
            self._database.run(
                "INSERT INTO checkpoints VALUES (?, ?, ?, ?) ON CONFLICT (chain, origin) DO UPDATE SET"
                " size = excluded.size, note = excluded.note WHERE excluded.size >= size",
                *(chain, head.origin, head.size, head.note),
            )
            self._database.run(
                "INSERT OR REPLACE INTO proofs VALUES (?, ?, ?)", chain, digest, proof
            )
        return heads[-1][0] if is_renamed else None

    def respondent_name(self, key: str) -> str:
        """Return the name of a respondent's ledger: a hash keyed with this store's random salt.

        The key itself (a number on a list, a telephone number) is never written. Keys that differ
        only in surrounding spaces or Unicode form (NFC) have the same name. The name of the empty
        key is empty: it represents the person who owns the install.

        Raises RandomnessError if a new store's salt cannot be drawn.
        """
        if not key:
            return ""
        normal = normal_key(key)
        name = self._hash(normal)
        if normal != key:
            self._merge(self._hash(key), name)
        return name

    def _hash(self, key: str) -> str:
        # surrogatepass: a key may contain lone surrogates, which strict UTF-8 refuses.
        return hmac.digest(self._salt(), key.encode("utf-8", "surrogatepass"), "sha256").hex()

    def _merge(self, old: str, name: str) -> None:
        """Rename answers that an earlier version stored under the hash of an unnormalised key.

        If both names have an answer to one survey, two values have been drawn: both answers are
        kept, and `name` is charged both costs.
        """
        query = "SELECT chain, survey, cost, delta FROM answers WHERE respondent = ?"
        # Read before the transaction, so that the common case takes no write lock.
        if not self._database.rows(query, old):
            return
        with self.transaction():
            costs = {row[:2]: row[2:] for row in self._database.rows(query, name)}
            for chain, survey, *cost in self._database.rows(query, old):
                where = "WHERE chain = ? AND survey = ? AND respondent = ?"
                if (chain, survey) not in costs:
                    self._database.run(
                        f"UPDATE answers SET respondent = ? {where}",  # noqa: S608
                        name,
                        chain,
                        survey,
                        old,
                    )  # noqa: RUF100, S608
                    continue
                both = total_charge([_charge(*costs[chain, survey]), _charge(*cost)])
                for respondent, charge in ((name, both), (old, Charge(Fraction(1)))):
                    update = f"UPDATE answers SET cost = ?, delta = ? {where}"  # noqa: S608  constants
                    self._database.run(update, *_texts(charge), chain, survey, respondent)

    def _salt(self) -> bytes:
        if not (rows := self._database.rows("SELECT salt FROM salt")):
            fresh = draw(256, secrets.randbits).to_bytes(32)
            with self.transaction():  # if two callers race, both use the salt of the first
                self._database.run(
                    "INSERT INTO salt SELECT ? WHERE NOT EXISTS (SELECT 1 FROM salt)", fresh
                )
            rows = self._database.rows("SELECT salt FROM salt")
        return bytes(rows[0][0])

    def answer(self, chain: str, survey: str, respondent: str = "") -> Sealed | None:
        """Return the sealed answer to a survey, None if this respondent has not answered it here.

        An answer of an unknown chain applies to every chain: a second value is never drawn.
        """
        return self._first(
            Sealed,
            f"SELECT {_SEALED} FROM answers "  # noqa: S608  constants
            "WHERE chain IN (?, ?) AND survey = ? AND respondent = ?",
            *(chain, UNKNOWN_CHAIN, survey, respondent),
        )

    def outbox(self) -> list[Sealed]:
        """Return every sealed report that is not acknowledged yet.

        They are ordered by survey and random id, which does not reveal the order of the answers.
        None is ever dropped to save space: a respondent has at most one report per survey and chain,
        of at most 16 KiB.
        """
        rows = self._database.rows(
            f"SELECT {_SEALED} FROM answers WHERE state = 'sealed' ORDER BY survey, report_id"  # noqa: S608
        )  # noqa: RUF100, S608
        return [Sealed(*row) for row in rows]

    def pending(self) -> int:
        """Return the number of reports in the outbox."""
        rows = self._database.rows("SELECT count(*) FROM answers WHERE state = 'sealed'")
        return int(rows[0][0]) if rows else 0

    def plan(self, chain: str, survey: str, respondent: str, form: str) -> str | None:
        """Return a respondent's stored plan, None if there is none for this form.

        form : digest of what a plan depends on.
        """
        rows = self._database.rows(
            "SELECT plan FROM plans WHERE chain = ? AND survey = ? AND respondent = ? AND form = ?",
            *(chain, survey, respondent, form),
        )
        return rows[0][0] if rows else None

    def keep_plan(self, chain: str, survey: str, respondent: str, form: str, plan: str) -> None:
        """Store a plan; call it inside the `transaction` that has found none for this form."""
        self._database.run(
            "INSERT INTO plans VALUES (?, ?, ?, ?, ?)", *(respondent, survey, chain, form, plan)
        )

    def reserve(
        self,
        chain: str,
        survey: str,
        digest: str,
        collect_url: str,
        length: int,
        charge: Charge,
        closes: str,
        respondent: str = "",
    ) -> None:
        """Store the cost of an answer, and reserve `length` bytes for its report.

        Call it inside `transaction`. SQLite opens and fills its journal here, so a full or
        read-only disk raises StoreError before anything is drawn.
        """
        self._database.run(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, zeroblob(?), 'sealed', '', ?, ?, ?)",
            *(
                chain,
                survey,
                respondent,
                digest,
                collect_url,
                "0" * 32,
                length,
                *_texts(charge),
                closes,
            ),
        )

    def seal(
        self, chain: str, survey: str, report_id: str, body: bytes, respondent: str = ""
    ) -> Sealed:
        """Write the report into the reserved space, delete the plans, and return the sealed answer.

        Call it inside the `transaction` of `reserve`, whose end makes all durable.
        """
        self._database.run(
            "UPDATE answers SET report_id = ?, body = ? WHERE chain = ? AND survey = ? AND respondent = ?",
            *(report_id, body, chain, survey, respondent),
        )
        self._database.run(
            "DELETE FROM plans WHERE chain = ? AND survey = ? AND respondent = ?",
            *(chain, survey, respondent),
        )
        sealed = self.answer(chain, survey, respondent)
        if sealed is None:
            raise StoreError("nothing was reserved for this answer; nothing was sent")
        return sealed

    def close_answer(self, sealed: Sealed, state: str, code: str) -> None:
        """Erase symbols and id of an acknowledged or finally refused report.

        The row and its cost stay.
        """
        self.close_answers([(sealed, state, code)])

    def close_answers(self, closed: Iterable[tuple[Sealed, str, str]]) -> None:
        """Erase symbols and ids of several reports, with their states and codes, together."""
        with self.transaction():
            for sealed, state, code in closed:
                self._database.run(
                    # Only a sealed row changes: another process may have closed it in the meantime.
                    "UPDATE answers SET state = ?, code = ?, body = NULL, report_id = ''"
                    " WHERE chain = ? AND survey = ? AND respondent = ? AND state = 'sealed'",
                    *(state, code, sealed.chain, sealed.survey, sealed.respondent),
                )
        # The journal still contains the earlier page, with the erased symbols.
        self._database.overwrite_journal()

    def spent(self, respondent: str = "") -> list[Charge]:
        """Return the cost of every survey that this respondent answered here, over all chains.

        Their total never decreases.
        """
        query = "SELECT cost, delta FROM answers WHERE respondent = ? ORDER BY survey, chain"
        return [_charge(*row) for row in self._database.rows(query, respondent)]

    def _first(self, make: Callable[..., _T], query: str, *values: object) -> _T | None:
        return next((make(*row) for row in self._database.rows(query, *values)), None)


def normal_key(key: str) -> str:
    """Return a respondent's key in its normal form: NFC, without spaces around it."""
    return unicodedata.normalize("NFC", key).strip()


def _charge(cost: str | None, delta: str) -> Charge:
    return Charge(None if cost is None else Fraction(cost), Fraction(delta))


def _texts(charge: Charge) -> tuple[str | None, str]:
    """Return the columns `cost` and `delta` of a charge."""
    return None if charge.odds is None else _text(charge.odds), _text(charge.delta)


def _text(ratio: Fraction) -> str:
    return f"{ratio.numerator}/{ratio.denominator}"
