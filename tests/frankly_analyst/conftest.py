# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a real server on a socket, with a published survey and some reports."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from tests.frankly_server.web.site import Site, captured_logs, make_site, waitress


@dataclass(frozen=True)
class Served:
    """A site and its URL."""

    site: Site
    url: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with sixty reports on a survey that shows estimates from ten reports on."""
    home = tmp_path_factory.mktemp("served")
    site = make_site(home, f"sqlite:///{home / 'frankly.db'}")
    site.services.intake.accept_batch(site.survey, [site.report(number) for number in range(60)])
    site.release()
    with closing(site.services), waitress(site.client.application) as origin, captured_logs():
        yield Served(site, origin)
