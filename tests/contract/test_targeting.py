# SPDX-License-Identifier: Apache-2.0
"""Targeted documents, which a server shows to a few devices (spec 9.2): devices refuse them, or the
log makes them public."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import DocumentRejected, Equivocation
from frankly_sdk import NetworkError, Policy
from frankly_sdk.testing import open_client
from frankly_sdk.transport import Reply
from frankly_server.log.audit import audit
from frankly_server.store import DocumentRow

from tests.frankly_protocol.samples import NOW, ldp_block, survey
from tests.frankly_server.log.sites import Place, watcher

ORIGIN = "https://collect.example"
HONEST = survey(ldp_block())
OWN = survey(ldp_block(epsilon="0.9"))


@dataclass
class Device:
    """A device and its transport; unless None, `special_document` is the survey that it receives."""

    place: Place
    special_document: bytes | None = None

    def get(self, url: str, limit: int) -> Reply:
        """Fetch from the server, which may serve a different document to this device."""
        path = url.removeprefix(ORIGIN)
        answer = self.place.http.get(path)
        lie = self.special_document is not None and path.partition("?")[0].endswith("/document")
        return Reply(
            answer.status_code,
            answer.mimetype or "",
            None,
            (self.special_document or b"") if lie else answer.data,
        )

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        """Fail: no report is sent in these tests."""
        raise NetworkError(url)

    def close(self) -> None:
        """Nothing to close."""

    def opens(self, store: Path, link: str, **policy: Any) -> str | None:
        """Open the survey; return the accepted digest, or None if the device refused the survey."""
        options: dict[str, Any] = {
            "policy": Policy(**policy),
            "transport": self,
            "clock": FixedClock(NOW),
        }
        try:
            with open_client(link, store, **options) as client:
                return client.survey.document.digest
        except (DocumentRejected, NetworkError):
            return None


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made_place = Place.make(tmp_path)
    (key,) = made_place.name("w.example")
    made_place.publish(HONEST)
    made_place.__dict__["witness"] = watcher("w.example", key, tmp_path)
    made_place.__dict__["witness"].visit(made_place)
    yield made_place
    made_place.services.close()


def own_document(place: Place) -> bytes:
    """Return the targeted document, with the publisher's valid signature."""
    from frankly_protocol.envelope import SURVEY_TYPE, Envelope

    return Envelope.seal(SURVEY_TYPE, OWN.payload(), place.services.keys.publishers()).to_bytes()


def log_it(place: Place) -> None:
    """Log the targeted document as the next version, because tables store one document per version."""
    row = DocumentRow(OWN.digest, OWN.survey, 2, OWN.digest, own_document(place))
    with place.services.database.transaction("test") as tx:
        tx.documents.add(row)
        tx.log.append(row.digest)


LINK = f"{ORIGIN}/s/{HONEST.survey}"
PIN = f"{LINK}#{HONEST.digest.replace(':', '=')}"
MODES: list[tuple[str, dict[str, bool]]] = [(PIN, {}), (LINK, {}), (PIN, {"require_log": True})]


@pytest.mark.parametrize(("link", "policy"), MODES, ids=["pinned", "logged", "both"])
def test_targeted_devices_refuse_and_the_others_are_unaffected(
    place: Place, tmp_path: Path, link: str, policy: dict[str, bool], full: bool
) -> None:
    devices, targeted = (1000, 10) if full else (10, 3)
    targeted_document = own_document(place)
    digests = [
        Device(place, targeted_document if i < targeted else None).opens(
            tmp_path / f"{i}.db", link, **policy
        )
        for i in range(devices)
    ]
    assert digests == [None] * targeted + [HONEST.digest] * (devices - targeted)


def test_a_targeted_document_in_the_log_is_named_by_every_audit(
    place: Place, tmp_path: Path
) -> None:
    log_it(place)
    place.__dict__["witness"].visit(place)
    assert Device(place, own_document(place)).opens(tmp_path / "s.db", LINK) == OWN.digest
    assert Device(place, own_document(place)).opens(tmp_path / "t.db", PIN) is None
    report = audit(place, FixedClock(NOW))
    assert any(
        finding.kind == "document" and finding.about == OWN.digest for finding in report.findings
    )
    # A server that states the version correctly is detected too, because one version has two
    # documents.
    honest = replace(
        place,
        bend=lambda p, b: b.replace(b'"version": 2', b'"version": 1') if "entries" in p else b,
    )
    split = [f for f in audit(honest, FixedClock(NOW)).findings if f.kind == "split"]
    assert len(split) == 1
    assert HONEST.digest in split[0].detail
    assert OWN.digest in split[0].detail


def test_a_forked_log_is_refused_by_witnesses_and_devices(place: Place, tmp_path: Path) -> None:
    from tests.frankly_server.log.test_witness import forked

    (tmp_path / "fork").mkdir()
    fork = forked(place, tmp_path / "fork", 0)
    fork.publish(OWN)
    with pytest.raises(Equivocation):
        place.__dict__["witness"].visit(fork)
    assert Device(fork).opens(tmp_path / "s.db", LINK) is None
    earlier_device = Device(place)
    assert earlier_device.opens(tmp_path / "t.db", LINK) == HONEST.digest
    earlier_device.place = fork
    assert earlier_device.opens(tmp_path / "t.db", LINK) is None
