# SPDX-License-Identifier: Apache-2.0
"""Holders of API keys as actors: their rights are checked again in the transaction of the action."""

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.accounts import KeyHolder
from frankly_server.keys import Access
from frankly_server.store import Database

from tests.frankly_server.accounts.people import Hands


@pytest.mark.parametrize(
    ("role", "code"), [("analyst", "forbidden"), ("admin", "forbidden"), ("owner", None)]
)
def test_only_an_owners_key_acts_for_owners(
    database: Database, hands: Hands, role: str, code: str | None
) -> None:
    access = Access(database, hands)
    holder = KeyHolder(access.authenticate(access.create(role, "x")))
    with database.administering("act") as tx:
        if code is None:
            holder.require_owner(tx)
            return
        with pytest.raises(InvalidInput) as refused:
            holder.require_owner(tx)
    assert refused.value.code == code
