# SPDX-License-Identifier: Apache-2.0
"""Warnings about surveys that devices refuse: closed, paused, signed with retired keys, or out of time."""

from dataclasses import replace
from datetime import timedelta

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import InvalidInput
from frankly_server.keys import Rotation, RotationChange

from tests.frankly_server.web.site import NOW, Site
from tests.refusals import refusal


def _change(site: Site) -> None:
    """Change the draft so that publication needs a new version."""
    draft = site.services.surveys.draft("habits")
    site.services.surveys.apply(draft.model_copy(update={"min_reports": draft.min_reports + 1}))


def _move(site: Site, *moves: str) -> None:
    for move in moves:
        site.services.lifecycle.move(site.survey, move)


@pytest.mark.parametrize(
    "moves", [("close",), ("pause", "close"), ("close", "archive")], ids="-".join
)
@pytest.mark.parametrize("changed", [True, False])
def test_a_closed_survey_is_not_published_again(
    site: Site, moves: tuple[str, ...], changed: bool
) -> None:
    if changed:
        _change(site)
    _move(site, *moves)
    for publish in (site.services.surveys.publish, site.services.jobs.start):
        error = refusal(InvalidInput, publish, site.survey)
        assert (error.code, error.field) == ("closed", "survey")
        assert "create a new survey" in error.detail
    assert len(site.services.surveys.versions(site.survey)) == 1


def test_a_survey_that_closes_during_publication_gets_no_version(site: Site) -> None:
    _change(site)
    with pytest.raises(InvalidInput) as refused:
        site.services.surveys.publish(
            "habits", lambda done, total, block: None if block else _move(site, "close")
        )
    assert refused.value.code == "closed"
    assert len(site.services.surveys.versions(site.survey)) == 1


def test_a_survey_that_has_all_its_reports_counts_as_closed(site: Site) -> None:
    site.services.lifecycle.stop_at(site.survey, 2)
    _change(site)
    assert site.send(site.report(1)).status_code == 201
    assert site.services.surveys.publish("habits").version == 2
    assert site.send(site.report(2)).status_code == 201
    assert site.services.surveys.publish("habits").status == "unchanged"  # nothing is released yet
    site.release()
    error = refusal(InvalidInput, site.services.surveys.publish, "habits")
    assert (error.code, "2 reports" in error.detail) == ("closed", True)
    site.services.lifecycle.stop_at(site.survey, 3)
    assert site.services.surveys.publish("habits").status == "unchanged"


def test_a_paused_survey_is_published_with_a_warning(site: Site) -> None:
    before = site.services.surveys.publish("habits")
    assert site.services.surveys.obstacles("habits") == ()
    _move(site, "pause")
    again = site.services.surveys.publish("habits")
    assert [warning for warning in again.warnings if "paused" in warning] == list(
        again.warnings[len(before.warnings) :]
    )
    assert again == replace(before, warnings=again.warnings)
    _change(site)
    assert any("paused" in warning for warning in site.services.surveys.publish("habits").warnings)
    _move(site, "resume")
    assert site.services.surveys.publish("habits").warnings == before.warnings


def test_documents_of_retired_keys_are_listed_until_they_are_signed_again(site: Site) -> None:
    services, clock = site.services, FixedClock(NOW)
    before = services.surveys.publish("habits")
    old = services.keys.trusted().publisher.keys[0].key_id
    proposal = Rotation(services.keys, clock).propose(RotationChange(drop=frozenset({old})))
    assert proposal.in_force
    again = services.surveys.publish("habits")
    assert again.status == "unchanged"
    (warning,) = again.warnings[len(before.warnings) :]
    assert "frankly keys resign" in warning
    assert services.surveys.obstacles(site.survey) == (warning,)
    services.surveys.sign_again(services.surveys.signed_by_others())
    assert services.surveys.publish("habits").warnings == before.warnings
    assert services.surveys.obstacles(site.survey) == ()


def test_a_closed_or_expired_version_is_reported(site: Site) -> None:
    (document,) = site.services.surveys.versions(site.survey)
    last = min(document.closes, document.expires)
    assert site.at(last).services.surveys.obstacles("habits") == ()
    later = site.at(last + timedelta(seconds=1)).services.surveys
    (warning,) = later.obstacles("habits")
    assert last.strftime("%Y-%m-%dT%H:%M:%SZ") in warning
    assert later.publish("habits").warnings[-1] == warning


def test_a_draft_has_no_obstacles_and_missing_keys_are_reported(site: Site) -> None:
    draft = site.services.surveys.draft("habits")
    site.services.surveys.apply(draft.model_copy(update={"name": "another"}))
    assert site.services.surveys.obstacles("another") == ()
    (site.services.keys.folder / "keys.json").unlink()
    (warning,) = site.services.surveys.obstacles("habits")
    assert "frankly doctor" in warning
