# SPDX-License-Identifier: Apache-2.0
"""Webhook events: sent once, signed with the secret, with a limited number of attempts."""

import base64
import hashlib
import hmac
import html
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock, format_time
from frankly_protocol.errors import InvalidInput
from frankly_server.store import Database
from frankly_server.surveys.outbound import Post, Undelivered
from frankly_server.surveys.webhooks import WAITS_S, Webhooks, WebhookThread
from standardwebhooks import WebhookVerificationError

from tests.frankly_server.web.site import NOW, Site
from tests.refusals import refusal
from tests.threads import concurrently

URL = "https://hooks.example.org/frankly"


@dataclass
class Ear(Post):
    """A fake network that records requests; it returns `answers` in turn and repeats the last one."""

    answers: list[int | None] = field(default_factory=lambda: [204])
    heard: list[tuple[str, bytes, Mapping[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(["hooks.example.org"])

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        self.heard.append((url, body, headers))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise Undelivered("the request to hooks.example.org failed (TimeoutError)")
        return answer


def hooks(site: Site, ear: Ear, now: datetime = NOW) -> Webhooks:
    return Webhooks(site.services.database, FixedClock(now), ear)


def check(secret: str, headers: Mapping[str, str], body: bytes) -> int:
    """Verify a signature as the specification of Standard Webhooks says; return its timestamp."""
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    version, _, mac = headers["webhook-signature"].partition(",")
    assert (version, len(key)) == ("v1", 32)
    assert base64.b64decode(mac) == hmac.new(key, signed, hashlib.sha256).digest()
    return int(headers["webhook-timestamp"])


def test_a_closed_survey_sends_one_signed_event(site: Site) -> None:
    ear = Ear()
    service = hooks(site, ear)
    secret = service.set(site.survey, URL)
    assert service.run_round() == 0  # nothing has happened
    site.services.lifecycle.move(site.survey, "close")
    assert [service.run_round() for _ in range(3)] == [1, 0, 0]
    url, body, headers = ear.heard[0]
    event = json.loads(body)
    assert url == URL
    assert event == {
        "type": "survey.closed",
        "timestamp": format_time(NOW),
        "data": {
            "survey": site.survey,
            "name": "habits",
            "version": 1,
            "reports": 0,
            "target": None,
        },
    }
    assert check(secret, headers, body) == int(NOW.timestamp())
    with pytest.raises(AssertionError):
        check(secret, headers, body + b" ")
    assert service.of(site.survey).deliveries[0].state == "delivered"
    assert secret not in repr(service.of(site.survey))


def test_a_test_message_is_sent_and_signed_like_an_event(site: Site) -> None:
    ear = Ear()
    service = hooks(site, ear)
    assert refusal(InvalidInput, service.send_test, site.survey).field == "url"
    secret = service.set(site.survey, URL)
    service.send_test(site.survey)
    with pytest.raises(InvalidInput, match="earlier test"):
        service.send_test(site.survey)
    assert service.run_round() == 1
    [(_, body, headers)] = ear.heard
    check(secret, headers, body)
    event = json.loads(body)
    assert event["type"] == "test"
    assert (event["data"]["survey"], event["data"]["reports"]) == (site.survey, None)
    service.send_test(site.survey)  # the earlier one has been delivered
    assert service.run_round() == 1


def test_a_target_that_is_met_and_a_last_day_that_passes_send_events(site: Site) -> None:
    ear = Ear()
    service = hooks(site, ear)
    service.set(site.survey, URL)
    site.services.lifecycle.stop_at(site.survey, 12)
    site.services.intake.accept_batch(site.survey, [site.report(i) for i in range(11)])
    assert service.run_round() == 0
    site.release()
    assert service.run_round() == 0
    site.services.intake.accept_batch(site.survey, [site.report(99)])
    assert service.run_round() == 0  # the report is pending
    site.release()
    assert service.run_round() == 1
    event = json.loads(ear.heard[-1][1])
    assert event["type"] == "target.met"
    assert (event["data"]["reports"], event["data"]["target"]) == (12, 12)
    later = hooks(site, ear, datetime.fromisoformat("2026-07-01T00:00:01+00:00"))
    assert later.run_round() == 1
    assert json.loads(ear.heard[-1][1])["type"] == "survey.closed"
    assert later.run_round() == 0


def test_tries_are_bounded_and_repeat_the_same_body(site: Site) -> None:
    ear = Ear(answers=[500, None, 302, 404])
    secret = hooks(site, ear).set(site.survey, URL)
    site.services.lifecycle.move(site.survey, "close")
    now = NOW
    for i in range(len(WAITS_S) + 3):
        assert hooks(site, ear, now).run_round() == (1 if i <= len(WAITS_S) else 0)
        assert (
            hooks(site, ear, now + timedelta(seconds=WAITS_S[min(i, 5)] - 1)).run_round() == 0
        )  # not yet
        now += timedelta(seconds=WAITS_S[min(i, 5)])
    assert len(ear.heard) == len(WAITS_S) + 1 == 7
    assert len({body for _, body, _ in ear.heard}) == 1
    assert len({check(secret, headers, body) for _, body, headers in ear.heard}) == 7
    delivery = hooks(site, ear).of(site.survey).deliveries[0]
    assert (delivery.state, delivery.tries, delivery.detail) == ("failed", 7, "answered 404")


def test_processes_at_the_same_time_try_each_event_once(fresh_site: Site) -> None:
    site, ear = fresh_site, Ear()
    hooks(site, ear).set(site.survey, URL)
    site.services.lifecycle.move(site.survey, "close")
    start = threading.Barrier(4)

    def run() -> None:
        own_database = Database(site.settings.store_url())
        start.wait()
        Webhooks(own_database, FixedClock(NOW), ear).run_round()
        own_database.close()

    concurrently(run, *[()] * 4)
    assert len(ear.heard) == 1


def test_earlier_events_are_not_sent_and_a_deleted_webhook_receives_none(site: Site) -> None:
    ear = Ear()
    service = hooks(site, ear)
    site.services.lifecycle.move(site.survey, "close")
    first = service.set(site.survey, URL)
    assert service.run_round() == 0
    assert "not sent" in service.of(site.survey).deliveries[0].detail
    assert service.set(site.survey, URL) != first
    service.remove(site.survey)
    assert service.of(site.survey).url is None
    assert (service.run_round(), ear.heard) == (0, [])


def test_an_address_that_is_not_allowed_is_not_stored(site: Site) -> None:
    service = hooks(site, Ear())
    for url in ("https://evil.example/", "http://hooks.example.org/"):
        with pytest.raises(InvalidInput):
            service.set(site.survey, url)
    with pytest.raises(InvalidInput, match="FRANKLY_WEBHOOK_HOSTS"):
        site.services.webhooks.set(site.survey, URL)


def test_reports_that_are_pending_are_not_counted(site: Site) -> None:
    ear = Ear()
    service = hooks(site, ear)
    service.set(site.survey, URL)
    site.services.intake.accept_batch(site.survey, [site.report(i) for i in range(9)])
    site.services.lifecycle.move(site.survey, "close")
    assert service.run_round() == 1
    assert json.loads(ear.heard[0][1])["data"]["reports"] == 0


def test_the_thread_runs_in_the_background_and_survives_a_failed_round(site: Site) -> None:
    delivered = threading.Event()

    class Once(Webhooks):
        rounds = 0

        def run_round(self) -> int:
            self.rounds += 1
            if self.rounds == 1:
                raise RuntimeError
            delivered.set()
            return 0

    service = Once(site.services.database, FixedClock(NOW), Ear())
    webhook_thread = WebhookThread(service, every_s=0.01)
    webhook_thread.wake()
    webhook_thread.wake()
    assert delivered.wait(60)
    webhook_thread.stop()
    assert sum(thread.name == "frankly-webhooks" for thread in threading.enumerate()) <= 1
    # Without an allowed host, no thread is started.
    quiet = Once(site.services.database, FixedClock(NOW), Ear())
    quiet._post.hosts = frozenset()  # as if the operator had named none
    WebhookThread(quiet, every_s=0.01).wake()
    assert quiet.rounds == 0


def test_the_snippet_that_the_page_shows_checks_a_signature(site: Site) -> None:
    page = (
        resources.files("frankly_server.web.admin")
        .joinpath("templates", "admin", "webhook.html")
        .read_text("utf-8")
    )
    code = html.unescape(re.findall(r"<pre data-copy>(from .*?)</pre>", page, re.DOTALL)[0])
    now = datetime.now(UTC)
    sent = {}
    for at in (now, now - timedelta(hours=1)):
        ear = Ear()
        secret = hooks(site, ear, at).set(site.survey, URL)
        hooks(site, ear, at).send_test(site.survey)
        hooks(site, ear, at).run_round()
        [(_, body, headers)] = ear.heard
        sent[at] = {"secret": secret, "body": body, "headers": headers}
    received: dict[str, Any] = {**sent[now]}
    exec(code, received)  # the code that receivers paste
    assert received["event"]["type"] == "test"
    for other in (
        {"body": body.replace(b"test", b"best")},
        {"secret": "whsec_" + base64.b64encode(bytes(32)).decode()},
        sent[now - timedelta(hours=1)],
    ):
        with pytest.raises(WebhookVerificationError):
            exec(code, sent[now] | other)


def test_an_event_delayed_by_a_fast_clock_is_sent_once_the_clock_is_right(site: Site) -> None:
    ear = Ear([500, 204])
    hooks(site, ear).set(site.survey, URL)
    site.services.lifecycle.move(site.survey, "close")
    assert hooks(site, ear, NOW + timedelta(days=1)).run_round() == 1
    # The next attempt is due in a day and a minute, which is later than any wait.
    assert hooks(site, ear, NOW).run_round() == 1
    assert hooks(site, ear).of(site.survey).deliveries[0].state == "delivered"
