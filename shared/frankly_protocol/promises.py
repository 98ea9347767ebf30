# SPDX-License-Identifier: Apache-2.0
"""What a document promises of a block: a claim of the verifier, with the names and sources that people read (ADR 0015).

One notion is one object; an intersection, or a promise under each of several priors, is several of them in a list.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from frankly_protocol import schema
from frankly_protocol.audit import NOTIONS, Claim
from frankly_protocol.errors import UnsupportedDocument
from frankly_protocol.mechanisms.base import MAX_ANSWERS

MAX_PROMISES = 16
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "ldp": ("level",),
    "dp": ("level", "delta"),
    "secret-ldp": ("level", "prior"),
    "lip": ("level", "prior"),
    "alip": ("level", "low_level", "prior"),
    "srlip": ("level", "prior", "attributes"),
    "rldp": ("level", "lower_bounds", "diagonal", "secret", "source"),
    "dpv": ("level", "prior", "sensitive"),
}
"""The fields of each notion, beside its name."""


@dataclass(frozen=True, slots=True)
class Prior:
    """The public prior a prior-based notion rests on: counts joint[s][x] of a named secret against the answers.

    One row means that the answer itself is the secret: `secrets` then names the answers.
    """

    secret: str
    secrets: tuple[str, ...]
    joint: tuple[tuple[int, ...], ...]
    source: str

    @property
    def table(self) -> tuple[tuple[int, ...], ...]:
        """The joint counts with one row per secret."""
        if len(self.joint) > 1:
            return self.joint
        (row,) = self.joint
        return tuple(tuple(n if s == x else 0 for x in range(len(row))) for s, n in enumerate(row))

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Prior":
        """Read a prior; DocumentRejected("schema") names the field."""
        data = schema.record(value, field, {"secret", "secrets", "joint", "source"})
        names = schema.items(data["secrets"], field + ".secrets", 2, MAX_ANSWERS, schema.identifier)
        schema.distinct(names, field + ".secrets")
        joint = schema.items(data["joint"], field + ".joint", 1, MAX_ANSWERS, counts)
        if len(joint) not in (1, len(names)) or (len(joint) == 1 and len(joint[0]) != len(names)):
            raise schema.reject(f"expected {len(names)} rows, or one row if the answer is the secret", field + ".joint")
        return cls(
            schema.identifier(data["secret"], field + ".secret"),
            names,
            joint,
            schema.text(data["source"], field + ".source"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the prior as it stands in a document."""
        joint = [list(row) for row in self.joint]
        return {"secret": self.secret, "secrets": list(self.secrets), "joint": joint, "source": self.source}


@dataclass(frozen=True, slots=True)
class Promise:
    """A claim and what people need to read it.

    prior : for secret-ldp, lip, alip, srlip and dpv; its table is the claim's joint. secret, source : what is protected
    and where that is known from; those of the prior, or rldp's own; None for ldp and dp.
    """

    claim: Claim
    prior: Prior | None = None
    secret: str | None = None
    source: str | None = None

    @classmethod
    def under(cls, claim: Claim, prior: Prior) -> "Promise":
        """Return the promise of a claim whose joint is the prior's table."""
        return cls(claim, prior, prior.secret, prior.source)

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Promise":
        """Read a promise, its form only: whether it says something definite is for the verifier (step 9).

        Raises UnsupportedDocument for an unknown notion, DocumentRejected("schema") naming the field.
        """
        notion = value.get("notion") if isinstance(value, dict) else None
        known = isinstance(notion, str) and notion in NOTIONS
        if isinstance(value, dict) and "notion" in value and not known:
            raise UnsupportedDocument("unknown notion: update the app", field)
        names = _FIELDS[str(notion)] if known else ()
        data = schema.record(value, field, {"notion", *names})
        read = {name: _READERS[name](data[name], f"{field}.{name}") for name in names}
        if notion == "alip" and read["level"] is read["low_level"] is None:
            raise schema.reject("two infinite levels promise nothing", field + ".level")
        if notion != "alip" and read["level"] is None:
            raise schema.reject("only alip may leave a level open", field + ".level")
        prior = read.pop("prior", None)
        secret, source = (prior.secret, prior.source) if prior else (read.pop("secret", None), read.pop("source", None))
        if "sensitive" in read:
            read["sensitive"] = _row_of(read["sensitive"], prior, field + ".sensitive")
        return cls(Claim(data["notion"], joint=prior.table if prior else None, **read), prior, secret, source)

    def to_json(self) -> dict[str, Any]:
        """Return the promise as it stands in a document."""
        claim = self.claim
        every: dict[str, Any] = {
            "level": _pair(claim.level),
            "low_level": _pair(claim.low_level),
            "delta": _pair(claim.delta),
            "prior": self.prior.to_json() if self.prior else None,
            "attributes": list(claim.attributes or ()),
            "lower_bounds": [[list(bound) for bound in row] for row in claim.lower_bounds or ()],
            "diagonal": claim.diagonal,
            "secret": self.secret,
            "source": self.source,
            "sensitive": self.prior.secrets[claim.sensitive] if self.prior and claim.sensitive is not None else None,
        }
        return {"notion": claim.notion} | {name: every[name] for name in _FIELDS[claim.notion]}


def counts(value: Any, field: str) -> tuple[int, ...]:
    """Return a list of 2 to 256 counts, one for each answer."""
    return schema.items(value, field, 2, MAX_ANSWERS, schema.integer)


def _bounds_row(value: Any, field: str) -> tuple[tuple[int, int], ...]:
    return schema.items(value, field, 1, MAX_ANSWERS // 2, lambda v, f: schema.ratio(v, f, 0))


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
    "attributes": lambda v, f: schema.items(v, f, 1, 8, lambda n, g: schema.integer(n, g, 2, MAX_ANSWERS)),
    "lower_bounds": lambda v, f: schema.items(v, f, 2, MAX_ANSWERS, _bounds_row),
    "diagonal": schema.flag,
    "secret": schema.identifier,
    "source": schema.text,
    "sensitive": schema.identifier,
}
