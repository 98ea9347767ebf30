# SPDX-License-Identifier: Apache-2.0
"""A server with the right keys on an empty database: devices keep their reports until the right one
is back, and each report arrives once."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

from frankly_protocol.clock import FixedClock
from frankly_sdk import NetworkError
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.store import restore_backup, save_backup
from frankly_server.surveys.definition import parse_definition

from tests.contract.conftest import ANSWERS, NOW, STRATA, SURVEY, InProcess, Site
from tests.migrated import migrated

PEOPLE = ("one", "two", "three")


def without_surveys(site: Site, folder: Path) -> Any:
    """Return a client of a server with the keys of the site and an empty database."""
    database = migrated(f"sqlite:///{folder / 'empty.db'}")
    services = Services(site.settings, database, FixedClock(NOW))
    return create_app(site.settings, services=services).test_client()


def test_every_report_arrives_once_after_the_right_database_is_back(
    site: Site, tmp_path: Path, monkeypatch: Any
) -> None:
    transport = site.transport()
    right, down = transport.http, NetworkError("down")
    with site.client("tablet", transport) as client:
        with monkeypatch.context() as offline:
            offline.setattr(InProcess, "post", lambda *_: (_ for _ in ()).throw(down))
            for person in PEOPLE:
                receipt = client.answer(ANSWERS, strata=STRATA, respondent=person, patience_s=0)
                assert receipt.status == "queued"
        transport.http = without_surveys(site, tmp_path)
        for _ in range(2):
            # The first report shows that the server does not know the survey; the others wait.
            assert [one.status for one in client.flush(0)] == ["queued"] * len(PEOPLE)
        assert len(transport.posted) == 2
        transport.http = right
        assert [one.status for one in client.flush(0)] == ["sent"] * len(PEOPLE)
        assert client.flush(0) == []
    assert site.stored() == len(PEOPLE)


def test_a_report_on_a_document_that_a_backup_lacks_delays_no_other(
    site: Site, tmp_path: Path
) -> None:
    """The server has the survey, but not the version that the device answered."""
    backup, older = BytesIO(), migrated(f"sqlite:///{tmp_path / 'older.db'}")
    save_backup(site.services.database, backup, "", None)
    restore_backup(older, backup, lambda *_: None)
    changed = SURVEY.replace(b'budget: "3"', b'budget: "3.5"')
    site.services.surveys.apply(parse_definition(changed))
    published = site.services.surveys.publish("habits")
    transport = site.transport()
    right = transport.http
    newer = replace(site, link=published.link)
    behind = Services(site.settings, older, FixedClock(NOW))
    with newer.client("device", transport) as client:
        transport.http = create_app(site.settings, services=behind).test_client()
        receipt = client.answer(ANSWERS, strata=STRATA, patience_s=0)
        assert (receipt.status, receipt.code) == ("queued", "doc_mismatch")
        transport.http = right
        assert [one.status for one in client.flush(0)] == ["sent"]
    assert site.stored() == 1
