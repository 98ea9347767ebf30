# SPDX-License-Identifier: Apache-2.0
"""Owners who demote or disable each other at the same time, one of whom stays an owner."""

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.accounts import Accounts, Person
from frankly_server.store.accounts import AccountsTable

from tests.frankly_server.accounts.people import PASSWORD
from tests.threads import concurrently

Act = Callable[[Accounts, Person, Person], None]
ACTS: dict[str, Act] = {
    "demote": lambda accounts, by, other: accounts.set_role(by, other.id, "viewer"),
    "disable": lambda accounts, by, other: accounts.disable(by, other.id),
}


@pytest.mark.parametrize("second", ACTS)
@pytest.mark.parametrize("first", ACTS)
def test_two_owners_cannot_remove_each_other(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    ada = accounts.sign_in("ada@example.org", PASSWORD).person
    bob = accounts.create("main", "bob@example.org", "owner", PASSWORD)
    # Both transactions read before either writes, if the database permits it.
    both_have_read, write = threading.Barrier(2), AccountsTable.change

    def change_late(table: AccountsTable, account_id: str, **values: str | int | None) -> None:
        # The barrier breaks if the other transaction waits for this transaction, as it should.
        with suppress(threading.BrokenBarrierError):
            both_have_read.wait(0.5)
        write(table, account_id, **values)

    monkeypatch.setattr(AccountsTable, "change", change_late)
    codes: list[str | None] = []

    def act(name: str, by: Person, other: Person) -> None:
        try:
            ACTS[name](accounts, by, other)
        except InvalidInput as error:
            codes.append(error.code)

    concurrently(act, (first, ada, bob), (second, bob, ada))
    assert codes == ["forbidden"]
    owners = [row for row in accounts.list("main") if row.role == "owner" and not row.disabled]
    assert len(owners) == 1


def test_a_demoted_owner_cannot_change_others_with_an_old_page(accounts: Accounts) -> None:
    ada = accounts.sign_in("ada@example.org", PASSWORD).person
    accounts.create("main", "bob@example.org", "owner", PASSWORD)
    bob = accounts.sign_in("bob@example.org", PASSWORD).person
    eve = accounts.create("main", "eve@example.org", "viewer", PASSWORD)
    accounts.set_role(ada, bob.id, "admin")
    with pytest.raises(InvalidInput, match="not an owner any more") as caught:
        accounts.set_role(bob, eve.id, "owner")
    assert caught.value.field == "account"
