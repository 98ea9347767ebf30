# SPDX-License-Identifier: Apache-2.0
"""People who run surveys: organisations, roles, passwords, sessions, and the trail of what they did."""

from frankly_server.accounts.passwords import Passwords
from frankly_server.accounts.roles import ROLES, may
from frankly_server.accounts.service import SESSION_S, Accounts, Person, SignedIn

__all__ = ["ROLES", "SESSION_S", "Accounts", "Passwords", "Person", "SignedIn", "may"]
