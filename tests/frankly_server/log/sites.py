# SPDX-License-Identifier: Apache-2.0
"""Real servers in this process with the transport of witnesses and auditors, and their witnesses."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope, SigningKey
from frankly_server.app import create_app
from frankly_server.keys import Rotation, RotationChange
from frankly_server.log.site import JSON, SiteError
from frankly_server.log.witness import Witness
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import DocumentRow, SurveyRow
from pydantic import SecretStr

from tests.frankly_protocol.samples import NOW, ldp_block, survey
from tests.migrated import opened

Bend = Callable[[str, bytes], bytes]


@dataclass
class Place:
    """A server with a separate database and keys; `bend` changes responses: (path, body) -> body."""

    services: Services
    settings: Settings
    bend: Bend = lambda _path, body: body
    asked: list[str] = field(default_factory=list)

    @classmethod
    def make(cls, folder: Path, url: str | None = None) -> "Place":
        """Return a server in `folder`, on SQLite unless there is a URL."""
        url = url or f"sqlite:///{folder / 'frankly.db'}"
        settings = Settings(home=folder / "home", database_url=SecretStr(url))
        return cls(opened(settings, FixedClock(NOW)), settings)

    @cached_property
    def http(self) -> FlaskClient:
        """A test client of the application."""
        return create_app(self.settings, services=self.services).test_client()

    def get(self, path: str, limit: int, kind: str = JSON) -> bytes:
        """Fetch from the application."""
        self.asked.append(path)
        answer = self.http.get(path)
        body = self.bend(path, answer.data)
        if answer.status_code != 200 or answer.mimetype != kind or len(body) > limit:
            raise SiteError(f"status {answer.status_code} {answer.data!r}", path)
        return body

    def post(self, path: str, body: bytes, kind: str) -> bytes:
        """Send to the application."""
        answer = self.http.post(path, data=body, content_type=kind)
        if answer.status_code != 200:
            raise SiteError(f"status {answer.status_code} {answer.data!r}", path)
        return answer.data

    def publish(self, document: SurveyDocument) -> str:
        """Sign, store and log a document, as publishing does."""
        envelope = Envelope.seal(
            SURVEY_TYPE, document.payload(), self.services.keys.publishers()
        ).to_bytes()
        row = DocumentRow(
            document.digest, document.survey, document.version, document.digest, envelope
        )
        with self.services.database.transaction("test") as tx:
            if tx.surveys.get(document.survey) is None:
                tx.surveys.add(SurveyRow(document.survey, f"s-{document.survey}", "{}"))
            tx.documents.add(row)
            tx.log.append(row.digest)
        return document.digest

    def surveys(self, count: int) -> list[str]:
        """Publish `count` surveys of one version each."""
        with self.services.database.reading("test") as tx:
            start = tx.log.size()
        return [
            self.publish(survey(ldp_block(), survey_id=f"{i:032x}"))
            for i in range(start, start + count)
        ]

    def second(self, survey_id: str, first: str) -> str:
        """Publish version 2 of a survey."""
        return self.publish(
            survey(ldp_block(epsilon="0.9"), version=2, prev=first, survey_id=survey_id)
        )

    def name(self, *names: str, threshold: int = 1) -> list[SigningKey]:
        """Add witnesses to the keys document; return their keys."""
        keys = [SigningKey.generate() for _ in names]
        named = tuple((name, key.public) for name, key in zip(names, keys, strict=True))
        Rotation(self.services.keys, FixedClock(NOW)).propose(
            RotationChange(witnesses=named, witness_threshold=threshold)
        )
        return keys

    def at(self, now: datetime) -> "Place":
        """Return the same server at another time."""
        return replace(
            self, services=Services(self.settings, self.services.database, FixedClock(now))
        )


def watcher(name: str, key: SigningKey, folder: Path, at: datetime = NOW) -> Witness:
    """Return a witness with its own folder."""
    return Witness(name, key, folder / name, FixedClock(at))


LATER = NOW + timedelta(hours=1)
