# SPDX-License-Identifier: Apache-2.0
"""Front page, and the answer to a survey link that leads nowhere, for people and for programs."""

import re

import pytest

from tests.frankly_server.web.site import Site, check_problem

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
UNKNOWN = "/s/" + "0" * 32


def test_the_front_page_says_what_the_server_is_and_its_links_lead_somewhere(site: Site) -> None:
    page = site.client.get("/")
    assert page.status_code == 200
    assert page.content_type == "text/html; charset=utf-8"
    assert "without ever holding them" in page.text
    links = re.findall(r'href="([^"]+)"', page.text)
    assert len(links) >= 4
    for link in links:
        assert site.client.get(link).status_code in (200, 303), link


def test_pages_for_everybody_run_no_script(site: Site) -> None:
    for path, status in (("/", 200), (UNKNOWN, 404)):
        page = site.client.get(path, headers={"Accept": BROWSER})
        assert page.status_code == status
        policy = page.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "script" not in page.text + policy


def test_a_person_with_a_wrong_link_gets_a_page(site: Site) -> None:
    page = site.client.get(UNKNOWN, headers={"Accept": BROWSER})
    assert "There is no such survey here" in page.text
    assert "copy all of it" in page.text
    assert "0000" not in page.text  # nothing of the address is repeated


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/problem+json", ""])
def test_a_program_with_a_wrong_link_gets_a_problem(site: Site, accept: str) -> None:
    answer = site.client.get(UNKNOWN, headers={"Accept": accept})
    check_problem(answer, 404, "survey_unknown")
