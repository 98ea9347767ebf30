# SPDX-License-Identifier: Apache-2.0
"""The store of one install: keys, documents, log heads, evidence, sealed answers and costs.

It never holds a true answer.

Everything but cost is remembered for a chain of keys, named by its first root: what a server with
keys of its own says changes nothing that was learned from another. What answers cost counts for a
respondent over all chains.
"""

import hmac
import secrets
import unicodedata
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from frankly_protocol.audit import Charge, total_charge
from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.errors import RandomnessError
from frankly_protocol.trust import KnownKeys

from frankly_sdk._database import Database
from frankly_sdk._tables import UNKNOWN_CHAIN
from frankly_sdk._trusted import Remembered
from frankly_sdk.errors import StoreError

_SEALED = "chain, survey, respondent, digest, collect_url, report_id, body, state, code"
_MAX_EVIDENCE = 16  # pieces of each chain: enough to show, too few to fill a disk with


@dataclass(frozen=True, slots=True)
class LogHead:
    """A log's head: the log's name, how many entries it has, and the signed note that says so."""

    origin: str
    size: int
    note: bytes


@dataclass(frozen=True, slots=True)
class Sealed:
    """One respondent's answer to a survey.

    body : the exact bytes to send while `state` is ``sealed``, afterwards None.
    chain : of the keys that signed the survey, empty if it was answered before chains were
        remembered.
    respondent : as `Store.respondent_name` gives it, empty for the owner of the install.
    digest : of the document that was answered.
    code : why it is in this state, as in a receipt.
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
        """Return the newest keys of an alias' chain.

        An alias is an origin, with the digest of the keys document if the app ships one.
        """
        query = "SELECT envelope, chain FROM aliases JOIN keys USING (chain) WHERE alias = ?"
        return next((KnownKeys(*row) for row in self._database.rows(query, alias)), None)

    def keys(self, chain: str) -> KnownKeys | None:
        """Return the newest accepted keys of a chain, under any alias."""
        rows = self._database.rows("SELECT envelope, chain FROM keys WHERE chain = ?", chain)
        return next((KnownKeys(*row) for row in rows), None)

    def remember_keys(self, alias: str, keys: KnownKeys) -> None:
        """Keep accepted keys.

        Call it inside the `transaction` that checked that they follow the stored ones.
        """
        self._database.run("INSERT OR REPLACE INTO aliases VALUES (?, ?)", alias, keys.chain)
        self._database.run("INSERT OR REPLACE INTO keys VALUES (?, ?)", keys.chain, keys.envelope)

    def survey(self, chain: str, survey: str) -> Remembered | None:
        """Return the document accepted last for a survey."""
        query = "SELECT version, digest, envelope FROM surveys WHERE chain = ? AND survey = ?"
        return next((Remembered(*row) for row in self._database.rows(query, chain, survey)), None)

    def remember(
        self,
        chain: str,
        survey: str,
        document: Remembered,
        instead_of: str | None = None,
    ) -> None:
        """Keep an accepted document.

        A version never gives way to a lower one, except to replace `instead_of`.

        instead_of : the digest of a document whose signers have been withdrawn since; it no longer
            counts.
        """
        with self.transaction():
            self._database.run(
                "INSERT INTO surveys VALUES (?, ?, ?, ?, ?) ON CONFLICT (chain, survey) DO UPDATE SET"
                " version = excluded.version, digest = excluded.digest, envelope = excluded.envelope"
                " WHERE excluded.version > version OR digest = ?",
                *(chain, survey, document.version, document.digest, document.envelope, instead_of),
            )

    def keep_evidence(self, chain: str, pieces: dict[str, bytes]) -> None:
        """Keep signed pieces that show a contradiction, by digest.

        At most 16 pieces are kept for each chain, the first ones.
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
            return  # half a contradiction proves nothing
        for digest, data in pieces.items():
            self._database.run(
                "INSERT OR IGNORE INTO evidence VALUES (?, ?, ?)",
                chain,
                digest,
                data,
            )

    def evidence(self) -> dict[str, bytes]:
        """Return the pieces kept as evidence, by digest, of every chain."""
        return dict(self._database.rows("SELECT digest, envelope FROM evidence"))

    def checkpoint(self, chain: str, origin: str) -> bytes | None:
        """Return the newest head seen of a log."""
        query = "SELECT note FROM checkpoints WHERE chain = ? AND origin = ?"
        return next((row[0] for row in self._database.rows(query, chain, origin)), None)

    def proof(self, chain: str, digest: str) -> bytes | None:
        """Return the proof with which a document was accepted last.

        A proof stored for an unknown chain is returned too, because the caller checks it.
        """
        # The unknown chain is the empty text, which sorts last: the chain's own proof comes first.
        query = "SELECT proof FROM proofs WHERE chain IN (?, ?) AND digest = ? ORDER BY chain DESC"
        return next(
            (row[0] for row in self._database.rows(query, chain, UNKNOWN_CHAIN, digest)),
            None,
        )

    def remember_log(self, chain: str, head: LogHead, digest: str, proof: bytes) -> str | None:
        """Keep a head and a document's proof; a head never gives way to a smaller one.

        Returns the name that the chain's log had before, if this is the first head under a new one.
        The old head is kept as evidence then, and as the head of the old name.
        """
        with self.transaction():
            heads = self._database.rows(
                "SELECT origin, note FROM checkpoints WHERE chain = ? ORDER BY rowid",
                chain,
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
                "INSERT OR REPLACE INTO proofs VALUES (?, ?, ?)",
                chain,
                digest,
                proof,
            )
        return heads[-1][0] if is_renamed else None

    def respondent_name(self, key: str) -> str:
        """Return the name of a respondent's ledger: a hash keyed with this store's random salt.

        The key itself (a number on a list, a telephone number) is never written. Spaces around it
        and the choice of code points for the same letters (NFC) do not make a different person. The empty key
        stays empty: it is the one person an install usually belongs to.
        """
        if not key:
            return ""
        normal = normal_key(key)
        name = self._hash(normal)
        if normal != key:
            self._merge(self._hash(key), name)
        return name

    def _hash(self, key: str) -> str:
        # surrogatepass: a key may hold lone surrogates, which strict UTF-8 refuses.
        return hmac.digest(self._salt(), key.encode("utf-8", "surrogatepass"), "sha256").hex()

    def _merge(self, old: str, name: str) -> None:
        """Rename answers that an earlier version stored under the hash of an unnormalised key.

        Where both have answered the survey, two values have been drawn already: both stay, and
        `name` bears both costs.
        """
        query = "SELECT chain, survey, cost, delta FROM answers WHERE respondent = ?"
        # Read before the transaction: the usual case takes no write lock.
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
            try:
                fresh = secrets.token_bytes(32)
            except (OSError, NotImplementedError):
                raise RandomnessError from None
            with self.transaction():  # a concurrent second caller keeps the first one's salt
                self._database.run(
                    "INSERT INTO salt SELECT ? WHERE NOT EXISTS (SELECT 1 FROM salt)",
                    fresh,
                )
            rows = self._database.rows("SELECT salt FROM salt")
        return bytes(rows[0][0])

    def answer(self, chain: str, survey: str, respondent: str = "") -> Sealed | None:
        """Return the sealed answer to a survey, None if this respondent has not answered it here.

        An answer of an unknown chain counts for every one: a second value is never drawn.
        """
        where = "chain IN (?, ?) AND survey = ? AND respondent = ?"
        query = f"SELECT {_SEALED} FROM answers WHERE {where}"  # noqa: S608  constants
        rows = self._database.rows(query, chain, UNKNOWN_CHAIN, survey, respondent)
        return next((Sealed(*row) for row in rows), None)

    def outbox(self) -> list[Sealed]:
        """Return every sealed report that is not acknowledged yet.

        Ordered by survey and random id: the order in which answers were given never shows. One
        respondent has at most one report per survey, each of at most 16 KiB, and the ledger bounds
        the surveys; nothing is ever dropped.
        """
        rows = self._database.rows(
            f"SELECT {_SEALED} FROM answers WHERE state = 'sealed' ORDER BY survey, report_id"  # noqa: S608
        )  # noqa: RUF100, S608
        return [Sealed(*row) for row in rows]

    def reserve(
        self,
        chain: str,
        survey: str,
        digest: str,
        collect_url: str,
        length: int,
        charge: Charge,
        respondent: str = "",
    ) -> None:
        """Enter the cost of an answer and room for its report of `length` bytes.

        Call it inside `transaction`. SQLite now opens and fills its journal: a disk that is full or
        not writable says so before anything is drawn.
        """
        self._database.run(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, zeroblob(?), 'sealed', '', ?, ?)",
            *(chain, survey, respondent, digest, collect_url, "0" * 32, length, *_texts(charge)),
        )

    def seal(
        self,
        chain: str,
        survey: str,
        report_id: str,
        body: bytes,
        respondent: str = "",
    ) -> Sealed:
        """Fill the reserved room with the report.

        Call it inside the `transaction` of `reserve`, whose end makes both durable.
        """
        self._database.run(
            "UPDATE answers SET report_id = ?, body = ? WHERE chain = ? AND survey = ? AND respondent = ?",
            *(report_id, body, chain, survey, respondent),
        )
        sealed = self.answer(chain, survey, respondent)
        if sealed is None:
            raise StoreError("nothing was reserved for this answer; nothing was sent")
        return sealed

    def close_answer(self, sealed: Sealed, state: str, code: str) -> None:
        """Erase symbols and id of an acknowledged or finally refused report.

        The row and its cost stay.
        """
        with self.transaction():
            self._database.run(
                # Only a sealed row changes: another process may have closed it in the meantime.
                "UPDATE answers SET state = ?, code = ?, body = NULL, report_id = ''"
                " WHERE chain = ? AND survey = ? AND respondent = ? AND state = 'sealed'",
                *(state, code, sealed.chain, sealed.survey, sealed.respondent),
            )
        # The journal still holds the page as it was, with the erased symbols.
        self._database.overwrite_journal()

    def spent(self, respondent: str = "") -> list[Charge]:
        """Return the cost of every survey this respondent answered here, over all chains.

        It never shrinks.
        """
        query = "SELECT cost, delta FROM answers WHERE respondent = ? ORDER BY survey, chain"
        return [_charge(*row) for row in self._database.rows(query, respondent)]


def normal_key(key: str) -> str:
    """Return a respondent's key in its normal form: NFC, without spaces around it."""
    return unicodedata.normalize("NFC", key).strip()


def _charge(cost: str | None, delta: str) -> Charge:
    return Charge(None if cost is None else Fraction(cost), Fraction(delta))


def _texts(charge: Charge) -> tuple[str | None, str]:
    """Return a charge as it stands in the store."""
    return None if charge.odds is None else _text(charge.odds), _text(charge.delta)


def _text(ratio: Fraction) -> str:
    return f"{ratio.numerator}/{ratio.denominator}"
