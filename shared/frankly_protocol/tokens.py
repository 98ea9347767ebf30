# SPDX-License-Identifier: Apache-2.0
"""The token rule of a survey document (spec 6.4)."""

import re
from dataclasses import dataclass
from typing import Any

from frankly_protocol import schema
from frankly_protocol.errors import UnsupportedDocument

KINDS = ("invite", "rsa-pss")
_KEY = re.compile(r"[A-Za-z0-9_-]{64,2000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenRule:
    """The kind of token that each report must carry, and the key that verifies it.

    kind : "invite" (single-use, handed out by the survey's operator, who could link them to
        people) or "rsa-pss" (blind signatures of an outside issuer, RFC 9474).
    key : the issuer's public key, DER SubjectPublicKeyInfo in base64url without padding; None for
        invites.
    """

    kind: str
    key: str | None = None

    @classmethod
    def from_json(cls, value: Any, field: str) -> "TokenRule":
        """Read a rule.

        Raises UnsupportedDocument for an unknown kind, otherwise DocumentRejected("schema"), naming
        the field.
        """
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
        return {"kind": self.kind, "key": self.key}
