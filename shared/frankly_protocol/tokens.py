# SPDX-License-Identifier: Apache-2.0
"""The token rule of a survey document (spec 6.4)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from frankly_protocol import schema
from frankly_protocol.errors import InvalidInput, UnsupportedDocument
from frankly_protocol.problems import Problem

KINDS = ("invite", "rsa-pss")
SOURCES: Final = "sources"
_KEY = re.compile(r"[A-Za-z0-9_-]{64,2000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenRule:
    """The kind of token that each report must carry, and the key that verifies it.

    kind : "invite" (single-use, handed out by the survey's operator, who could link them to
        people) or "rsa-pss" (blind signatures of an outside issuer, RFC 9474).
    key : the issuer's public key, DER SubjectPublicKeyInfo in base64url without padding; None for
        invites.

    With sources, such as panels or classes, each has a rule of its own. Then kind is "sources",
    question the public question whose choices are the sources, and rules has that of each choice.
    """

    kind: str
    key: str | None = None
    question: str | None = None
    rules: Mapping[str, "TokenRule"] = field(default_factory=dict, hash=False)

    @classmethod
    def from_json(cls, value: Any, field: str) -> "TokenRule":
        """Read a rule.

        Raises UnsupportedDocument for an unknown kind, otherwise DocumentRejected("schema"), naming
        the field.
        """
        if isinstance(value, Mapping) and value.get("kind") == SOURCES:
            return cls._of_sources(value, field)
        return cls._of_one(value, field)

    @classmethod
    def _of_sources(cls, value: Mapping[str, Any], field: str) -> "TokenRule":
        data = schema.DOCUMENT.record(value, field, {"kind", "question", "rules"})
        question = schema.identifier(data["question"], f"{field}.question")
        rules, path = data["rules"], f"{field}.rules"
        if not isinstance(rules, Mapping):
            raise schema.reject("expected a rule for each source", path)
        # Sorted, so that equal objects always give the same error.
        read = {name: cls._of_one(rules[name], f"{path}.{name}") for name in sorted(rules)}
        return cls(SOURCES, question=question, rules=read)

    @classmethod
    def _of_one(cls, value: Any, field: str) -> "TokenRule":
        data = schema.DOCUMENT.record(value, field, {"kind", "key"})
        # A newer server may know more kinds, so the app is too old; the document is not invalid.
        if data["kind"] not in KINDS:
            raise UnsupportedDocument("unknown kind of token: update the app", field + ".kind")
        if data["kind"] == "invite":
            if data["key"] is not None:
                raise schema.reject("invites have no key", field + ".key")
            return cls("invite")
        if not isinstance(data["key"], str) or not _KEY.fullmatch(data["key"]):
            raise schema.reject("expected a public key in base64url", field + ".key")
        return cls("rsa-pss", data["key"])

    def to_json(self) -> dict[str, Any]:
        """Return the rule in its JSON form."""
        if self.question is None:
            return {"kind": self.kind, "key": self.key}
        rules = {name: rule.to_json() for name, rule in self.rules.items()}
        return {"kind": self.kind, "question": self.question, "rules": rules}

    def rule_for(self, source: object) -> "TokenRule":
        """Return the rule of a source; without sources, this rule.

        Raises InvalidInput(strata_invalid) if there is no such source.
        """
        if self.question is None:
            return self
        rule = self.rules.get(source) if isinstance(source, str) else None
        if rule is None:
            raise InvalidInput(
                Problem.STRATA_INVALID,
                "not one of the question's choices",
                f"strata.{self.question}",
            )
        return rule

    @property
    def invites(self) -> frozenset[str]:
        """The sources with invites of the survey's server; "" stands for a survey without sources."""
        rules = self.rules if self.question else {"": self}
        return frozenset(name for name, rule in rules.items() if rule.kind == "invite")

    @property
    def is_mixed(self) -> bool:
        """True if some sources have invites and the others blind tokens of an issuer."""
        return 0 < len(self.invites) < len(self.rules)

    @property
    def weakest(self) -> str:
        """The kind that protects least: "invite" if any token is one, otherwise "rsa-pss"."""
        return "invite" if self.invites else "rsa-pss"
