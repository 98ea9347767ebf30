# SPDX-License-Identifier: Apache-2.0
"""Promises of a document about a block: a claim, with names and sources for people (ADR 0015).

Each promise has one notion; an intersection of notions, or one notion under several priors, is a
list of promises.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from frankly_protocol import schema
from frankly_protocol.audit import Claim
from frankly_protocol.audit.data import Joint
from frankly_protocol.audit.declared import DECLARED, Notion
from frankly_protocol.audit.work import MAX_COUNTS
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected, UnsupportedDocument
from frankly_protocol.mechanisms.base import MAX_ANSWERS

MAX_PROMISES = 16
MAX_STRATA = 4096
"""Largest number of tables in one prior, one for each stratum."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Public counts that a prior-based notion rests on.

    tables : one table of counts [s][x] of a named secret against the answers; or one for each
        stratum, row-major over the document's strata, the last question fastest. A table of one row
        means that the answer itself is the secret: `secrets` then names the answers.
    """

    secret: str
    secrets: tuple[str, ...]
    tables: tuple[Joint, ...]
    source: str

    @property
    def by_stratum(self) -> tuple[Joint, ...]:
        """The tables, each with one row per secret."""
        return tuple(map(_rows_per_secret, self.tables))

    @property
    def table(self) -> Joint:
        """The counts of all strata, with one row per secret: the sum of the tables."""
        totals = tuple(
            tuple(map(sum, zip(*rows, strict=True))) for rows in zip(*self.tables, strict=True)
        )
        return _rows_per_secret(totals)

    @property
    def size(self) -> int:
        """The number of counts in the tables, with one row per secret."""
        return len(self.tables) * len(self.secrets) * len(self.tables[0][0])

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Prior":
        """Read a prior.

        Raises DocumentRejected("work_limit") for too many counts, otherwise
        DocumentRejected("schema"), naming the field.
        """
        data = schema.DOCUMENT.record(value, field, {"secret", "secrets", "tables", "source"})
        names = schema.items(data["secrets"], field + ".secrets", 2, MAX_ANSWERS, schema.identifier)
        schema.distinct(names, field + ".secrets")
        tables = schema.items(data["tables"], field + ".tables", 1, MAX_STRATA, _table)
        # Checked before one-row tables are expanded to one row per secret.
        if len(tables) * len(names) * len(tables[0][0]) > MAX_COUNTS:
            raise DocumentRejected(
                "work_limit", f"a prior has at most {MAX_COUNTS} counts", field + ".tables"
            )
        for z, table in enumerate(tables):
            place = f"{field}.tables[{z}]"
            if len(table) not in (1, len(names)) or (
                len(table) == 1 and len(table[0]) != len(names)
            ):
                raise schema.reject(
                    f"expected {len(names)} rows, or one row if the answer is the secret", place
                )
            if [len(row) for row in table] != [len(tables[0][0])] * len(tables[0]):
                raise schema.reject(
                    "every row of every table must have as many columns as the first", place
                )
            if len(tables) > 1 and not any(map(any, table)):
                raise schema.reject(
                    "a stratum without counts has no prior: add counts, or merge strata", place
                )
        prior = cls(
            schema.identifier(data["secret"], field + ".secret"),
            names,
            tables,
            schema.text(data["source"], field + ".source"),
        )
        # Each count is below 2^53 already, but the sum over the strata need not be.
        if len(tables) > 1 and max(map(max, prior.table)) > MAX_INT:
            raise schema.reject(
                "the counts of all strata must sum to less than 2^53", field + ".tables"
            )
        return prior

    def to_json(self) -> dict[str, Any]:
        """Return the prior in its JSON form."""
        tables = [[list(row) for row in table] for table in self.tables]
        return {
            "secret": self.secret,
            "secrets": list(self.secrets),
            "tables": tables,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Promise:
    """A claim, with the names and the source that people need to read it.

    prior : for secret-ldp, lip, alip, srlip and dpv; the claim's joint is the sum of its tables.
    secret, source : name of the secret, and source of the prior or of rldp's lower bounds; None
        for prior-free notions.
    """

    claim: Claim
    prior: Prior | None = None
    secret: str | None = None
    source: str | None = None

    @property
    def is_stratified(self) -> bool:
        """True if the claim is made within every stratum, given the public answers."""
        return self.prior is not None and len(self.prior.tables) > 1

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that the mechanism must keep: the claim itself, or one within each stratum.

        A secret without mass in a stratum cannot occur there and is omitted. If only one secret can
        occur, the stratum determines it without the report, and there is no claim for this stratum,
        except for dpv if it is the sensitive one (docs/maths/whole_report.md).
        """
        return tuple(claim for _, claim in self.numbered_claims)

    @property
    def numbered_claims(self) -> tuple[tuple[int | None, Claim], ...]:
        """The claims, each with the position of its stratum, or None without strata."""
        if self.prior is None or len(self.prior.tables) == 1:
            return ((None, self.claim),)
        claims = ((z, self._within(table)) for z, table in enumerate(self.prior.by_stratum))
        return tuple((z, claim) for z, claim in claims if claim is not None)

    def _within(self, table: Joint) -> Claim | None:
        # Rows without mass are dropped: conditioning on such a secret would divide by zero.
        present = [s for s, row in enumerate(table) if any(row)]
        rows, sensitive = tuple(table[s] for s in present), self.claim.sensitive
        if sensitive is None:
            return replace(self.claim, joint=rows) if len(rows) > 1 else None
        # If only the sensitive secret has mass, it is certain, and the verifier refuses the claim.
        return (
            replace(self.claim, joint=rows, sensitive=present.index(sensitive))
            if sensitive in present
            else None
        )

    @classmethod
    def under(cls, claim: Claim, prior: Prior) -> "Promise":
        """Return the promise of a claim whose joint is the prior's table."""
        return cls(claim, prior, prior.secret, prior.source)

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Promise":
        """Read a promise and check its form only; the verifier checks its meaning (step 9).

        Raises UnsupportedDocument for an unknown notion, DocumentRejected("work_limit") for a prior
        that is too large, otherwise DocumentRejected("schema"), naming the field.
        """
        notion = value.get("notion") if isinstance(value, dict) else None
        declared = DECLARED.get(notion) if isinstance(notion, str) else None
        # Checked before the fields, so that an old app reports a new notion as unsupported, not
        # its fields as unknown.
        if isinstance(value, dict) and "notion" in value and declared is None:
            raise UnsupportedDocument("unknown notion: update the app", field)
        names = declared.fields if declared else ()
        data = schema.DOCUMENT.record(value, field, {"notion", *names})
        read = {name: _READERS[name](data[name], f"{field}.{name}") for name in names}
        assert declared is not None  # noqa: S101 - a record without a notion has been refused
        _require_level(declared, read, field + ".level")
        prior = read.pop("prior", None)
        secret, source = (
            (prior.secret, prior.source)
            if prior
            else (read.pop("secret", None), read.pop("source", None))
        )
        if "sensitive" in read:
            read["sensitive"] = _row_of(read["sensitive"], prior, field + ".sensitive")
        return cls(
            Claim(data["notion"], joint=prior.table if prior else None, **read),
            prior,
            secret,
            source,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the promise in its JSON form."""
        claim = self.claim
        every: dict[str, Any] = {
            "level": _pair(claim.level),
            "low_level": _pair(claim.low_level),
            "delta": _pair(claim.delta),
            "prior": self.prior.to_json() if self.prior else None,
            "attributes": list(claim.attributes or ()),
            "lower_bounds": [[list(bound) for bound in row] for row in claim.lower_bounds or ()],
            "diagonal": claim.diagonal,
            "levels": [[_pair(ratio) for ratio in row] for row in claim.levels or ()],
            "secret": self.secret,
            "source": self.source,
            "sensitive": self.prior.secrets[claim.sensitive]
            if self.prior and claim.sensitive is not None
            else None,
        }
        return {"notion": claim.notion} | {
            name: every[name] for name in DECLARED[claim.notion].fields
        }


def _require_level(notion: Notion, read: Mapping[str, Any], field: str) -> None:
    """Raise DocumentRejected("schema") if a level is left out that the notion needs."""
    if len(notion.bounds) == 2:
        if all(read[name] is None for name in notion.bounds):
            raise schema.reject("two infinite levels promise nothing", field)
    elif read["level"] is None:
        two = ", ".join(name for name, one in DECLARED.items() if len(one.bounds) == 2)
        raise schema.reject(f"only {two} may leave a level out", field)


def _table(value: Any, field: str) -> Joint:
    return schema.items(value, field, 1, MAX_ANSWERS, counts)


def _rows_per_secret(table: Joint) -> Joint:
    if len(table) > 1:
        return table
    # The secret is the answer itself: its counts are the diagonal.
    (row,) = table
    return tuple(tuple(n if s == x else 0 for x in range(len(row))) for s, n in enumerate(row))


def counts(value: Any, field: str, most: int = MAX_ANSWERS) -> tuple[int, ...]:
    """Read a list of 2 to `most` counts, one for each answer."""
    return schema.items(value, field, 2, most, schema.integer)


def _bounds_row(value: Any, field: str) -> tuple[tuple[int, int], ...]:
    return schema.items(value, field, 1, MAX_ANSWERS // 2, lambda v, f: schema.ratio(v, f, 0))


def _pairs_row(value: Any, field: str) -> tuple[tuple[int, int] | None, ...]:
    return schema.items(
        value, field, 2, MAX_ANSWERS, lambda v, f: schema.optional(v, f, schema.ratio)
    )


def _row_of(name: str, prior: Prior | None, field: str) -> int:
    names = prior.secrets if prior else ()
    if name not in names:
        raise schema.reject("this is not one of the prior's secrets", field)
    return names.index(name)


def _pair(ratio: tuple[int, int] | None) -> list[int] | None:
    return None if ratio is None else list(ratio)


_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "level": lambda v, f: schema.optional(v, f, schema.ratio),
    "low_level": lambda v, f: schema.optional(v, f, schema.ratio),
    "delta": lambda v, f: schema.ratio(v, f, 0),
    "prior": Prior.from_json,
    "attributes": lambda v, f: schema.items(
        v, f, 1, 8, lambda n, g: schema.integer(n, g, 2, MAX_ANSWERS)
    ),
    "lower_bounds": lambda v, f: schema.items(v, f, 2, MAX_ANSWERS, _bounds_row),
    "diagonal": schema.DOCUMENT.flag,
    "levels": lambda v, f: schema.items(v, f, 2, MAX_ANSWERS, _pairs_row),
    "secret": schema.identifier,
    "source": schema.text,
    "sensitive": schema.identifier,
}
