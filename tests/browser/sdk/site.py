# SPDX-License-Identifier: Apache-2.0
"""The real application behind a socket, with a currently open survey in English and Arabic."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from flask import request
from frankly_protocol.clock import SystemClock, format_time
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from playwright.sync_api import Browser, Page
from pydantic import SecretStr

from tests.browser.conftest import WATCH
from tests.frankly_server.web.site import waitress
from tests.migrated import opened
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
    """The application's origin, the survey's pinned link, and the services for access to stored data.

    requested : paths of all requests so far.
    """

    origin: str
    link: str
    services: Services
    survey: str
    requested: list[str]


def in_languages(text: str, languages: Sequence[str]) -> str:
    """Return a survey's file in these languages; those that it lacks have the English texts with a mark."""

    def spoken(value: Any) -> Any:
        if isinstance(value, list):
            return [spoken(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "en" not in value:
            return {key: spoken(one) for key, one in value.items()}
        return {one: value.get(one, f"{value['en']} ({one})") for one in languages}

    return json.dumps(
        spoken(yaml.safe_load(text)) | {"languages": list(languages)}, default=format_time
    )


@contextmanager
def hosted(
    home: Path,
    more: str = "",
    languages: Sequence[str] = ("en", "ar"),
    text: str = SURVEY,
    around: Callable[[Any], Any] = lambda app: app,
) -> Iterator[Site]:
    """Publish and serve; text : the survey's file. more : further lines of it. around : middleware."""
    port = free_port()
    origin, now = f"http://127.0.0.1:{port}", datetime.now(UTC)
    settings = Settings(
        home=home, database_url=SecretStr(f"sqlite:///{home / 'frankly.db'}"), public_url=origin
    )
    services = opened(settings, SystemClock())
    text = text.format(
        opens=format_time(now - timedelta(hours=1)), closes=format_time(now + timedelta(days=30))
    )
    services.surveys.apply(parse_definition(in_languages(text + more, languages).encode()))
    published = services.surveys.publish("habits")
    requested: list[str] = []
    app = create_app(settings, services=services)
    app.before_request(lambda: requested.append(request.path))
    pin = published.digest.replace(":", "=")
    link = f"{origin}/s/{published.survey_id}#{pin}"
    with closing(services), waitress(around(app), port, threads=4):
        yield Site(origin, link, services, published.survey_id, requested)


LOOKS = [
    (width, scheme, language)
    for width in (360, 1280)
    for scheme in ("light", "dark")
    for language in ("en", "ar")
]


def visit(
    browser: Browser, link: str, width: int = 1280, scheme: Any = "light", language: str = "en"
) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, locale=language
    )
    context.add_init_script(WATCH)
    page = context.new_page()
    page.said = []  # type: ignore[attr-defined]
    page.on("console", lambda message: page.said.append(message.text))  # type: ignore[attr-defined, call-overload]
    page.on("pageerror", lambda error: page.said.append(str(error)))  # type: ignore[attr-defined, call-overload]
    page.goto(link)
    return page
