# SPDX-License-Identifier: Apache-2.0
"""Fixtures: an organisation with one owner."""

import pytest
from frankly_server.accounts import Accounts, Passwords
from frankly_server.store import Database

from tests.frankly_server.accounts.people import CHEAP, PASSWORD, Hands


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def accounts(database: Database, hands: Hands) -> Accounts:
    accounts = Accounts(database, hands, Passwords(CHEAP))
    accounts.create("main", "Ada@example.org", "owner", PASSWORD)
    return accounts
