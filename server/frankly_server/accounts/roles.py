# SPDX-License-Identifier: Apache-2.0
"""Roles in order of their rights: each role has all rights of those before it."""

from typing import Final

ROLES: Final = ("viewer", "analyst", "admin", "owner")
"""viewer : sees surveys, their answers as numbers, links and results. analyst : also downloads all figures.
admin : also creates surveys and API keys. owner : also manages accounts, reads the audit trail."""


def may(role: str, needed: str) -> bool:
    """Return True if a role is `needed` or a later one; False for an unknown role."""
    return role in ROLES and ROLES.index(role) >= ROLES.index(needed)
