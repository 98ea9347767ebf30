# SPDX-License-Identifier: Apache-2.0
"""Test doubles for an app that embeds the SDK: server, clock and network in one process.

    clock = FakeClock()
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}, clock=clock), clock=clock)
    server.network.then(drop(), status(503, retry_after=7))
    with server.open(tmp_path / "answers.db") as client:
        assert client.answer({"smokes": "yes"}, patience_s=60).status == "sent"
    assert len(server.reports) == 1

No socket is opened and no real time passes; everything else is real, including signatures and the
exact verification.
"""

from frankly_protocol.clock import Clock
from frankly_protocol.report import Report
from frankly_protocol.tokens import TokenRule

from frankly_sdk.testing.network import (
    Network,
    drop,
    log_in_page,
    lose_receipt,
    pass_on,
    redirect,
    status,
)
from frankly_sdk.testing.opening import open_aio_client, open_client
from frankly_sdk.testing.server import FakeServer, Request
from frankly_sdk.testing.surveys import Authority, make_survey
from frankly_sdk.testing.time import FakeClock

__all__ = [
    "Authority",
    "Clock",
    "FakeClock",
    "FakeServer",
    "Network",
    "Report",
    "Request",
    "TokenRule",
    "drop",
    "log_in_page",
    "lose_receipt",
    "make_survey",
    "open_aio_client",
    "open_client",
    "pass_on",
    "redirect",
    "status",
]
