# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a real server on a socket, with a published survey and some reports."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from frankly_server.cli.waitress_server import Server

from tests.frankly_server.web.site import Site, captured_logs, make_site


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
    server = Server(
        site.client.application, host="127.0.0.1", port=0, threads=2, body_limit_bytes=2**21
    )
    running = threading.Thread(target=server.run)
    running.start()
    with captured_logs():
        yield Served(site, f"http://127.0.0.1:{server.port}")
    server.stop()
    running.join(15)
    site.services.close()
