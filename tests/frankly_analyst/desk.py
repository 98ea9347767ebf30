# SPDX-License-Identifier: Apache-2.0
"""Survey with answers in four public strata on a real server, for notebooks, the guide, and R.

Symbols are drawn with a fixed seed, so that outputs are the same in every run, except for ids.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from pathlib import Path
from typing import Final

from tests.frankly_server.web.site import Site, captured_logs, make_site, waitress
from tests.survey_files import DRINKS, REGION, SMOKES, habits
from tests.threads import listening

_SEX: Final = """\
  - id: sex
    text: {en: "What is your sex?"}
    choices: [{id: f, label: {en: Female}}, {id: m, label: {en: Male}}]
"""
SURVEY: Final = habits(SMOKES, DRINKS, budget="2", strata=REGION + _SEX)
BATCH: Final = 500


def filled(home: Path, n: int) -> Site:
    """Return a site with n reports; smoking depends on sex, drinking on region."""
    site = make_site(home, f"sqlite:///{home / 'frankly.db'}", SURVEY)
    draw = random.Random(11)
    groups = list(product(("north", "south"), ("f", "m")))
    reports = []
    for number in range(n):
        # Three in four respondents are from the north, so that weights matter.
        region, sex = groups[(0, 1, 0, 1, 0, 1, 2, 3)[number % 8]]
        symbols = [
            draw.choices([0, 1], [0.62, 0.38 + 0.1 * (sex == "m")])[0],
            draw.choices([0, 1, 2], [0.42, 0.33 + 0.1 * (region == "south"), 0.25])[0],
        ]
        strata = {"region": region, "sex": sex}
        reports.append(site.report(number, y=symbols, strata=strata))
    for start in range(0, n, BATCH):
        site.services.intake.accept_batch(site.survey, reports[start : start + BATCH])
    site.release()
    return site


@contextmanager
def serving(site: Site) -> Iterator[dict[str, str]]:
    """Serve a site; yield the environment variables that the guide and the notebooks read."""
    with closing(site.services), waitress(site.client.application) as origin, captured_logs():
        yield {"FRANKLY_URL": origin, "FRANKLY_API_KEY": site.analyst_key, "SURVEY": site.survey}


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def stranger(answer: Answer) -> Iterator[str]:
    """Another HTTP server on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def do_POST(self) -> None:
            answer(self)

        def log_message(self, *_arguments: object) -> None:
            return

    with listening(HTTPServer(("127.0.0.1", 0), Handler)) as origin:
        yield origin


def says(status: int, content_type: str, body: bytes, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            **headers,
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer
