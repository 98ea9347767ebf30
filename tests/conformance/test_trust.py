# SPDX-License-Identifier: Apache-2.0
"""Acceptance of documents by an SDK: steps 1 to 10, rollback, equivocation, expiry, pins, keys, log.

The vectors contain the faults that a step refuses; this suite has one or two faults for each step.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.trust import Role

from tests.conformance.conftest import Install
from tests.conformance.site import JSON, KEYS, Site, problem
from tests.frankly_protocol.samples import (
    NOW,
    PUBLISHER,
    STRANGER,
    dp_block,
    ldp_block,
    lip_block,
    question,
    sealed,
)
from tests.frankly_protocol.trust.samples import FakeLog
from tests.vectors.from_documents import put

DOCUMENT_PATH = f"/v1/surveys/{'ab' * 16}/document"
BAD_INPUT, REFUSED, NETWORK, INTEGRITY = 3, 4, 5, 6


def test_a_pinned_survey_is_accepted_explained_and_then_opens_without_the_server(
    install: Install,
) -> None:
    assert install.init().status == 0
    outcome = install.refresh()
    assert outcome.status == 0
    document = install.site.document
    assert (outcome.body["survey"], outcome.body["version"], outcome.body["digest"]) == (
        "ab" * 16,
        1,
        document.digest,
    )
    assert outcome.body["questions"] == {"affair": ["no", "yes"]}
    assert outcome.body["signed_by"] == [PUBLISHER.public.key_id]
    assert document.title["en"] in outcome.body["explanation"]
    requests_before = len(install.site.requested_paths)
    assert install.refresh().status == 0
    assert len(install.site.requested_paths) == requests_before


def signed_with_change(path: str, value: Any) -> Callable[[Site], None]:
    """Sign a changed document and pin its bytes in the link, so that a check other than the pin
    must refuse it."""

    def act(site: Site) -> None:
        body = json.loads(site.document.payload())
        put(body, path, value)
        payload = canonical.dumps(body)
        site.envelope = sealed(payload)
        site.override["pin"] = (0, canonical.digest(payload), b"", {})

    return act


def envelope(data: bytes | Callable[[Site], bytes]) -> Callable[[Site], None]:
    def act(site: Site) -> None:
        site.envelope = data(site) if callable(data) else data

    return act


ATTACKS: dict[str, tuple[Callable[[Site], None], int, str]] = {
    "1 endless": (envelope(b" " * 6 * 2**20), NETWORK, "limit"),
    "2 not JSON": (envelope(b"<html>"), INTEGRITY, "document_envelope"),
    "2 a deep nest": (envelope(b"[" * 100_000), INTEGRITY, "document_envelope"),
    "3 a stranger signed": (
        envelope(lambda s: sealed(s.document.payload(), STRANGER)),
        INTEGRITY,
        "document_signature",
    ),
    "4 an unknown field": (signed_with_change("extra", 1), INTEGRITY, "document_schema"),
    "5 a newer type": (signed_with_change("type", "frankly.survey/3"), INTEGRITY, "document_type"),
    "8 a document other than the pinned one": (
        lambda s: void(s.show(replace(s.document, title={"en": "Another"}))),
        INTEGRITY,
        "document_pin",
    ),
    "8 another survey": (
        lambda s: envelope(sealed(s.make(survey_id="cd" * 16).payload()))(s),
        INTEGRITY,
        "document_pin",
    ),
    "9 the level is too low": (
        signed_with_change("blocks.0.claims.0.level.1", 2**48 + 2**10),
        INTEGRITY,
        "document_privacy",
    ),
    "reports would leave without TLS": (
        signed_with_change("collect_url", "http://collect.example/r"),
        BAD_INPUT,
        "insecure_transport",
    ),
    "a log-in page": (
        lambda s: s.override.update({DOCUMENT_PATH: (200, "text/html", b"<html>", {})}),
        NETWORK,
        "not_json",
    ),
    "a redirect": (
        lambda s: s.override.update(
            {DOCUMENT_PATH: (302, JSON, b"", {"Location": "https://elsewhere.example"})}
        ),
        NETWORK,
        "redirect",
    ),
    "nobody there": (lambda s: s.override.update({DOCUMENT_PATH: None}), NETWORK, "network"),
    "unknown survey": (
        lambda s: s.override.update({DOCUMENT_PATH: problem(404, "not_found")}),
        NETWORK,
        "not_found",
    ),
}


def void(_value: object) -> None:
    """Discard a value, so that a lambda returns None."""


@pytest.mark.parametrize("name", ATTACKS)
def test_a_failed_step_is_refused_by_its_code_and_nothing_is_sent(
    install: Install, name: str
) -> None:
    attack, status, code = ATTACKS[name]
    link = install.site.link()
    attack(install.site)
    pinned = install.site.override.pop("pin", None)
    assert install.init(link=install.site.link(digest=pinned[1]) if pinned else link).status == 0
    outcome = install.refresh()
    assert (outcome.status, outcome.code) == (status, code)
    answered = install.answer()
    assert (answered.status, answered.code) == (status, code)
    assert "yes" not in answered.text
    assert install.site.posted == []


@pytest.mark.parametrize(("minutes", "field"), [(-1451, "opens"), (30 * 1440 + 11, "closes")])
def test_6_outside_its_window_a_survey_is_refused(
    install: Install, minutes: int, field: str
) -> None:
    install.init()
    install.now = NOW + timedelta(minutes=minutes)
    outcome = install.refresh()
    assert (outcome.status, outcome.code, outcome.body["field"]) == (
        INTEGRITY,
        "document_window",
        field,
    )
    install.now = NOW
    assert install.refresh().status == 0


def test_7_an_older_version_and_a_second_document_of_one_version_are_refused(
    install: Install,
) -> None:
    first = install.site.document
    install.init(pin=False)
    assert install.refresh().status == 0
    second = install.site.show(replace(first, version=2, prev=first.digest))
    assert install.refresh().body["version"] == 2
    install.site.show(first)
    assert (install.refresh().status, install.outcomes[-1].code) == (INTEGRITY, "document_version")
    install.site.show(replace(second, title={"en": "Another"}))
    assert (install.refresh().status, install.outcomes[-1].code) == (INTEGRITY, "document_version")
    install.site.show(second)
    assert install.refresh().status == 0
    assert install.site.posted == []


def test_8_without_pin_or_log_a_survey_is_refused_unless_the_app_opts_in(install: Install) -> None:
    install.site.rotate(replace(KEYS, version=2, log=None))
    install.init(pin=False)
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_unpinned")
    install.init(pin=False, allow_unpinned=True)
    assert install.refresh().status == 0
    install.init(pin=True, require_log=True)
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_unlogged")


LOGS: dict[str, Callable[[Site], None]] = {
    "one witness": lambda s: void(
        setattr(s, "log", FewerWitnesses(s.log.digests, witnesses=["w0.example"]))
    ),
    "a month ago": lambda s: void(setattr(s.log, "signed_at", NOW - timedelta(days=31))),
}


class FewerWitnesses(FakeLog):
    """A log with fewer witnesses."""

    def __init__(self, digests: list[str], witnesses: list[str]) -> None:
        super().__init__(digests)
        self.witnesses = witnesses

    def proof(self, digest: str, witnesses: Any = None) -> Any:
        return super().proof(digest, witnesses or self.witnesses)


@pytest.mark.parametrize("name", LOGS)
def test_8_a_log_that_fails_verification_is_refused(install: Install, name: str) -> None:
    LOGS[name](install.site)
    install.init(pin=False)
    assert (install.refresh().status, install.outcomes[-1].code) == (INTEGRITY, "document_log")


def test_8_a_log_only_grows(install: Install) -> None:
    site = install.site
    site.log.digests[:0] = ["sha256:" + "11" * 32, "sha256:" + "22" * 32]
    install.init(pin=False)
    assert install.refresh().status == 0
    before = list(site.log.digests)
    site.log.digests[:] = before[1:]
    assert (install.refresh().status, install.outcomes[-1].code) == (INTEGRITY, "document_version")
    site.log.digests[:] = ["sha256:" + "33" * 32, *before[1:], "sha256:" + "44" * 32]
    assert (install.refresh().status, install.outcomes[-1].code) == (INTEGRITY, "document_version")
    site.log.digests[:] = [*before, "sha256:" + "44" * 32]
    assert install.refresh().status == 0
    assert not any("since" in path or "old=" in path for path in site.requested_paths), (
        "the request must not reveal the stored log head"
    )


def test_keys_follow_from_those_the_app_ships(install: Install) -> None:
    site = install.site
    site.rotate(replace(KEYS, version=2))
    site.rotate(replace(KEYS, version=3, publisher=Role((STRANGER.public,), 1)))
    install.init(link=site.link())
    assert (install.refresh().status, install.outcomes[-1].code) == (
        INTEGRITY,
        "document_signature",
    )
    site.show(site.document, STRANGER, log=False)
    assert install.refresh().status == 0
    del site.keys[1:]
    site.envelope = sealed(site.document.payload())
    site.override["/v1/keys/chain"] = None
    assert install.refresh().status == 0, (
        "the stored document, signed with the new keys, must be used without a request"
    )


def test_keys_that_do_not_follow_are_refused(install: Install) -> None:
    root = Role((STRANGER.public,), 1)
    install.site.rotate(replace(KEYS, version=2, root=root), STRANGER)
    install.init()
    assert (install.refresh().status, install.outcomes[-1].code) == (INTEGRITY, "document_keys")


def test_10_the_apps_limits_hold(install: Install) -> None:
    site = install.site
    install.init(cap="0.9")
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_cap")
    site.show(site.make(dp_block(), survey_id="aa" * 16))
    install.init(cap="64")
    assert (install.refresh().status, install.outcomes[-1].code) == (
        REFUSED,
        "policy_cap",
    )  # δ needs an explicit delta_cap
    site.show(site.make(lip_block(), survey_id="cd" * 16))
    install.init(pin=False)
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_ceiling")
    install.init()
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_final")
    install.init(final_surveys=["cd" * 16])
    outcome = install.refresh()
    assert outcome.status == 0
    assert "not protected" in outcome.body["explanation"]
    install.init(final_surveys=["cd" * 16], cap="0.99")  # 0.5-LIP changes the odds by up to 1 nat
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_cap")
    site.show(site.make(lip_block(), lip_block("other"), survey_id="ef" * 16))
    install.init(final_surveys=["ef" * 16])
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_composition")
    region = question("region", "north", "south")
    site.show(site.make(lip_block(), survey_id="fe" * 16, strata=(region,)))
    install.init(final_surveys=["fe" * 16])
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_composition")


def test_10_a_final_survey_is_answered_first_and_nothing_after_it(install: Install) -> None:
    site, names = install.site, ["cd" * 16, "ef" * 16]
    for survey_id, expected in zip(names, (0, REFUSED), strict=True):
        site.show(site.make(lip_block(), survey_id=survey_id))
        install.init(final_surveys=names)
        assert install.answer({"marriage": "good"}).status == expected
    assert install.outcomes[-1].code == "policy_budget"
    site.show(site.make(ldp_block(epsilon="0.01"), survey_id="ba" * 16))
    install.init(final_surveys=names)
    assert (install.refresh().status, install.outcomes[-1].code) == (REFUSED, "policy_budget")
    assert len(site.posted) == 1


def test_10_earlier_answers_count(install: Install) -> None:
    install.init(cap="1.5")
    assert install.answer().status == 0
    install.site.show(install.site.make(ldp_block(), survey_id="cd" * 16))
    install.init(cap="1.5")
    assert (install.answer().status, install.outcomes[-1].code) == (REFUSED, "policy_budget")
    assert len(install.site.posted) == 1
