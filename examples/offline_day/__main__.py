# SPDX-License-Identifier: Apache-2.0
"""An enumerator's day: fetch the survey in the morning, interview without network, send at night.

python -m examples.offline_day

Runs with `frankly_sdk.testing`, so that a day takes a moment and no server is needed. On a real
tablet, replace `server.open(…)` by `Client.open(link, store)`; everything else is the same.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path

from frankly_sdk import AlreadyAnswered, Client
from frankly_sdk.testing import FakeServer, make_survey

VISIT = timedelta(minutes=20)


def visits(
    client: Client, people: Iterable[tuple[str, Mapping[str, str]]], after_each: Callable[[], None]
) -> Counter[str]:
    """Interview people, each with a separate key and ledger, without waiting for a network."""
    statuses: Counter[str] = Counter()
    for key, answers in people:
        try:
            statuses[client.answer(answers, respondent=key, patience_s=0).status] += 1
        except AlreadyAnswered:
            statuses["met before"] += 1
        after_each()
    return statuses


def day(folder: Path, say: Callable[[str], None] = print) -> int:
    """Simulate the day; return 0 if every report arrived exactly once."""
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    store = folder / "tablet.db"
    server.open(store).close()
    say("08:00  the survey is on the tablet, signature and promise checked")

    server.network.online = False
    people = [(f"house {i}", {"smokes": ("no", "yes")[i % 3 == 0]}) for i in range(24)]
    with server.open(store) as client:  # the link contains the digest, so no network is needed
        morning = visits(client, people[:14], lambda: server.clock.advance(VISIT))
        say(f"12:40  {morning['queued']} people answered; the battery dies")
    with server.open(store) as client:
        afternoon = visits(client, people[12:], lambda: server.clock.advance(VISIT))
        say(
            f"16:40  {afternoon['queued']} more answered, {afternoon['met before']} had been met before "
            "and were not asked twice"
        )
        lost = Counter(receipt.status for receipt in client.flush(timeout_s=1))
        say(
            f"17:00  on a hill, the network fails too soon: {lost['queued']} reports are still waiting"
        )
        server.network.online = True
        sent = Counter(receipt.status for receipt in client.flush())
        say(f"19:00  at home: {sent['sent']} reports sent, in random order")
    say(
        f"       the server has {len(server.reports)} noisy answers; the tablet has only who answered"
    )
    return 0 if len(server.reports) == len(people) == sent["sent"] else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(day(Path(temporary)))
