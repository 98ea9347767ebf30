# SPDX-License-Identifier: Apache-2.0
"""Survey with answers in four public strata on a real server, for notebooks, the guide, and R.

Symbols are drawn with a fixed seed, so that outputs are the same in every run, except for ids.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Final

from frankly_server.cli.waitress_server import Server

from tests.frankly_server.web.site import Site, captured_logs, make_site
from tests.survey_files import DRINKS, REGION, SMOKES, habits

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
    server = Server(
        site.client.application, host="127.0.0.1", port=0, threads=2, body_limit_bytes=2**21
    )
    running = threading.Thread(target=server.run)
    running.start()
    try:
        with captured_logs():
            yield {
                "FRANKLY_URL": f"http://127.0.0.1:{server.port}",
                "FRANKLY_API_KEY": site.analyst_key,
                "SURVEY": site.survey,
            }
    finally:
        server.stop()
        running.join(15)
        site.services.close()
