# SPDX-License-Identifier: Apache-2.0
"""Who acts: a person who has signed in, or the holder of an API key in one request."""

from dataclasses import dataclass
from typing import Protocol

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.keys.access import Principal
from frankly_server.keys.idempotency import Attempt
from frankly_server.store import Transaction


class Actor(Protocol):
    """What services need to know of whoever acts.

    id : id of the account, or prefix of the API key. actor : the name in the audit trail.
    """

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def organisation(self) -> str: ...  # noqa: D102
    @property
    def actor(self) -> str: ...  # noqa: D102
    @property
    def role(self) -> str: ...  # noqa: D102

    def require_unchanged(self, tx: Transaction) -> None:
        """Raise InvalidInput(unauthenticated) if the access was taken away since the request began."""

    def require_owner(self, tx: Transaction) -> None:
        """Raise InvalidInput: forbidden if this is no owner (any more), or as `require_unchanged`.

        Call this in an administering transaction; the check is then valid until the commit.
        """

    def acted(self, tx: Transaction) -> None:
        """Do what belongs to every recorded action, in its transaction."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The holder of an API key, in one request. attempt : of its idempotency key, or None."""

    principal: Principal
    attempt: Attempt | None = None

    @property
    def id(self) -> str:
        """The key's prefix."""
        return self.principal.prefix

    @property
    def organisation(self) -> str:
        """Owner of the surveys that the key can use."""
        return self.principal.organisation

    @property
    def role(self) -> str:
        """The key's role."""
        return self.principal.role

    @property
    def actor(self) -> str:
        """The name in the audit trail."""
        return f"API key {self.principal.prefix}…"

    def require_unchanged(self, tx: Transaction) -> None:
        """Raise InvalidInput(unauthenticated) if the key has been revoked."""
        row = tx.api_keys.get(self.principal.prefix)
        if row is None or row.revoked is not None:
            raise InvalidInput(Problem.UNAUTHENTICATED, "the API key has just been revoked")

    def require_owner(self, tx: Transaction) -> None:
        """Raise InvalidInput: forbidden for a key of another role, or as `require_unchanged`."""
        self.require_unchanged(tx)
        if self.role != "owner":
            raise InvalidInput(Problem.FORBIDDEN, "this needs a key of the role owner")

    def acted(self, tx: Transaction) -> None:
        """Check the key again, and claim the request for its idempotency key."""
        self.require_unchanged(tx)
        if self.attempt is not None:
            self.attempt.claim(tx)
