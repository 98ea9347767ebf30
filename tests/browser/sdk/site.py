# SPDX-License-Identifier: Apache-2.0
"""The real application behind a socket, with a survey in English and Arabic that is open now."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from frankly_protocol.clock import SystemClock, format_time
from frankly_server.app import create_app
from frankly_server.cli.waitress_server import Server
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade
from pydantic import SecretStr

from tests.ports import free_port

SURVEY = """
name: habits
title: {{en: "Health and habits", ar: "الصحة والعادات"}}
consent:
  en: "Asked by the university's clinic. Taking part is voluntary."
  ar: "تسأل عيادة الجامعة. المشاركة طوعية."
languages: [en, ar]
opens: {opens}
closes: {closes}
expires: {closes}
min_reports: 2
budget: "2.5"
blocks:
  - id: smokes
    notion: ldp
    epsilon: "1"
    mechanism: warner
    questions:
      - id: smokes
        text: {{en: "Have you smoked in the last 30 days?", ar: "هل دخّنت خلال آخر ٣٠ يومًا؟"}}
        choices: [{{id: "no", label: {{en: "No", ar: "لا"}}}}, {{id: "yes", label: {{en: "Yes", ar: "نعم"}}}}]
  - id: drinks
    notion: ldp
    epsilon: "1"
    mechanism: grr
    questions:
      - id: drinks
        text: {{en: "How often do you drink alcohol?", ar: "كم مرة تشرب الكحول؟"}}
        choices:
          - {{id: never, label: {{en: "Never", ar: "أبدًا"}}}}
          - {{id: weekly, label: {{en: "About every week", ar: "كل أسبوع تقريبًا"}}}}
          - {{id: daily, label: {{en: "Nearly every day", ar: "كل يوم تقريبًا"}}}}
strata:
  - id: region
    text: {{en: "Where do you live?", ar: "أين تسكن؟"}}
    choices:
      - {{id: north, label: {{en: "In the north", ar: "في الشمال"}}}}
      - {{id: south, label: {{en: "In the south", ar: "في الجنوب"}}}}
"""


@dataclass(frozen=True)
class Site:
    """origin : its address. link : the pinned link. services : access to the stored data."""

    origin: str
    link: str
    services: Services
    survey: str


@contextmanager
def hosted(home: Path, more: str = "") -> Iterator[Site]:
    """Publish and serve; more : further lines of the survey's file."""
    port = free_port()
    origin, now = f"http://127.0.0.1:{port}", datetime.now(UTC)
    settings = Settings(
        home=home, database_url=SecretStr(f"sqlite:///{home / 'frankly.db'}"), public_url=origin
    )
    database = Database(settings.store_url())
    upgrade(database)
    database.close()
    services = Services.open(settings, SystemClock())
    services.keys.init()
    text = SURVEY.format(
        opens=format_time(now - timedelta(hours=1)), closes=format_time(now + timedelta(days=30))
    )
    services.surveys.apply(services.surveys.parse_definition((text + more).encode()))
    published = services.surveys.publish("habits")
    server = Server(
        create_app(settings, services=services),
        host="127.0.0.1",
        port=port,
        threads=4,
        body_limit_bytes=2**21,
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    pin = published.digest.replace(":", "=")
    try:
        yield Site(origin, f"{origin}/s/{published.survey_id}#{pin}", services, published.survey_id)
    finally:
        server.stop()
        thread.join()
        services.close()
