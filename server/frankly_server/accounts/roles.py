# SPDX-License-Identifier: Apache-2.0
"""What a role may do: each does all that those before it do."""

from typing import Final

ROLES: Final = ("viewer", "analyst", "admin", "owner")
"""viewer : sees surveys, their intake, links and estimates. analyst : downloads estimates as well. admin : makes
surveys and API keys. owner : also decides who has an account, and reads the audit trail."""


def may(role: str, needed: str) -> bool:
    """Tell whether a role is `needed` or one that does more."""
    return role in ROLES and ROLES.index(role) >= ROLES.index(needed)
