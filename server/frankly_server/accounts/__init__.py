# SPDX-License-Identifier: Apache-2.0
"""Accounts of people who run surveys: roles, passwords, sessions, and the audit trail."""

from frankly_server.accounts.actors import Actor, KeyHolder
from frankly_server.accounts.passkeys import Passkeys
from frankly_server.accounts.passwords import Passwords
from frankly_server.accounts.roles import ROLES, may
from frankly_server.accounts.second_factor import SecondFactors
from frankly_server.accounts.service import Accounts
from frankly_server.accounts.sessions import (
    BROWSER_S,
    PENDING_S,
    SESSION_S,
    Person,
    SecondFactorNeeded,
    SignedIn,
    WaysLeft,
)

__all__ = [
    "BROWSER_S",
    "PENDING_S",
    "ROLES",
    "SESSION_S",
    "Accounts",
    "Actor",
    "KeyHolder",
    "Passkeys",
    "Passwords",
    "Person",
    "SecondFactorNeeded",
    "SecondFactors",
    "SignedIn",
    "WaysLeft",
    "may",
]
