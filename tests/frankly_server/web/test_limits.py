# SPDX-License-Identifier: Apache-2.0
"""Rate limits by survey and by key: the requests that they allow, their headers, and the data that
they ignore."""

import re
from typing import Any

import pytest
from frankly_server.app import create_app
from frankly_server.web import limits

from tests.frankly_server.web.site import Hand, Site, check_problem


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    clock = Hand()
    original_limits = limits.RateLimits
    monkeypatch.setattr(limits, "RateLimits", lambda settings: original_limits(settings, now=clock))
    return clock


def limited(site: Site, **rates: float) -> Any:
    return create_app(site.settings.model_copy(update=rates), services=site.services).test_client()


def test_a_survey_accepts_its_rate_and_then_refuses(site: Site, hand: Hand) -> None:
    client = limited(site, survey_rate_per_s=0.5)  # 5 in 10 s
    answers = [client.post(site.reports_path, json=site.report(100 + i)) for i in range(6)]
    assert [answer.status_code for answer in answers] == [201] * 5 + [429]
    check_problem(answers[5], 429, "too_many")
    assert answers[5].headers["Retry-After"] == "2"
    assert answers[5].headers["RateLimit"] == '"survey";r=0;t=2'
    hand.now += 1.9
    assert client.post(site.reports_path, json=site.report(105)).status_code == 429
    hand.now += 0.1
    assert client.post(site.reports_path, json=site.report(105)).status_code == 201


def test_the_remaining_limit_of_a_survey_is_not_disclosed(site: Site, hand: Hand) -> None:
    """The remaining number would reveal arrivals, so responses show only the policy until the limit
    is reached."""
    client = limited(site, survey_rate_per_s=0.3)
    for number in (200, 201):
        answer = client.post(site.reports_path, json=site.report(number))
        assert answer.headers["RateLimit-Policy"] == '"survey";q=3;w=10'
        assert "RateLimit" not in answer.headers


def test_refused_reports_do_not_use_up_the_limit(site: Site, hand: Hand) -> None:
    client = limited(site, survey_rate_per_s=0.1)  # one in 10 s
    for _ in range(20):
        assert client.post(site.reports_path, json=site.report(300, y=[9, 9])).status_code == 422
        assert (
            client.post(site.reports_path, data=b"{", content_type="application/json").status_code
            == 400
        )
    assert client.post(site.reports_path, json=site.report(300)).status_code == 201
    assert client.post(site.reports_path, json=site.report(301)).status_code == 429


def test_the_sender_s_address_makes_no_difference(site: Site, hand: Hand) -> None:
    client = limited(site, survey_rate_per_s=0.2)  # two in 10 s, from any address
    statuses = []
    for number, address in enumerate(
        ("198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.1")
    ):
        headers = {"X-Forwarded-For": address}
        answer = client.post(
            site.reports_path,
            json=site.report(400 + number),
            headers=headers,
            environ_base={"REMOTE_ADDR": address},
        )
        statuses.append(answer.status_code)
    assert statuses == [201, 201, 429, 429]


def test_each_key_has_its_own_limit_and_gets_its_remainder(site: Site, hand: Hand) -> None:
    client = limited(site, key_rate_per_s=0.2)

    def ask(key: str) -> Any:
        return client.get(site.estimates_path, headers={"Authorization": f"Bearer {key}"})

    answers = [ask(site.analyst_key) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["RateLimit"] for answer in answers] == [
        '"key";r=1;t=0',
        '"key";r=0;t=5',
        '"key";r=0;t=5',
    ]
    assert ask(site.admin_key).status_code == 200
    refused = ask("frankly_live_" + "A" * 43)
    assert refused.status_code == 401
    assert "RateLimit" not in refused.headers


def test_a_429_is_counted(site: Site, hand: Hand) -> None:
    token = "t" * 32
    settings = site.settings.model_copy(update={"survey_rate_per_s": 0.1})
    settings = settings.model_copy(
        update={"metrics_token": type(site.settings.database_url)(token)}
    )
    client = create_app(settings, services=site.services).test_client()
    for number in range(500, 503):
        client.post(site.reports_path, json=site.report(number))
    text = client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).text
    assert re.search(r'^frankly_limited_total\{limit="survey"\} 2$', text, re.MULTILINE)
