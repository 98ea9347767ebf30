# SPDX-License-Identifier: Apache-2.0
"""An enumerator's day: the survey is fetched in the morning, there is no network for hours, the evening sends it all.

python -m examples.offline_day

Runs on the SDK's test kit, so that a day takes a moment and no server is needed. On a real tablet `server.open(…)` is
`Client.open(link, store)`, and the rest stays as it is.
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
    """Interview people, each with a key and a ledger of their own; nothing waits for a network."""
    statuses: Counter[str] = Counter()
    for key, answers in people:
        try:
            statuses[client.answer(answers, respondent=key, patience_s=0).status] += 1
        except AlreadyAnswered:
            statuses["met before"] += 1
        after_each()
    return statuses


def day(folder: Path, say: Callable[[str], None] = print) -> int:
    """Live the day; 0 if every answer arrived exactly once."""
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    store = folder / "tablet.db"
    server.open(store).close()
    say("08:00  the survey is on the tablet, signature and promise checked")

    server.network.online = False
    people = [(f"house {i}", {"smokes": ("no", "yes")[i % 3 == 0]}) for i in range(24)]
    with server.open(store) as client:  # known by its digest: no network needed
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
            f"17:00  on a hill, one bar of network that lasts too short: {lost['queued']} reports still wait"
        )
        server.network.online = True
        sent = Counter(receipt.status for receipt in client.flush())
        say(
            f"19:00  at home: {sent['sent']} reports sent, in an order that says nothing about the day"
        )
    say(
        f"       the server has {len(server.reports)} noisy answers; the tablet keeps who has answered, not what"
    )
    return 0 if len(server.reports) == len(people) == sent["sent"] else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(day(Path(temporary)))
