# SPDX-License-Identifier: Apache-2.0
"""Front page, and the answer to a survey link that leads nowhere, for people and for programs."""

import re
from contextlib import closing
from datetime import timedelta

import pytest

from tests.frankly_server.web.site import NOW, Site, check_problem

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


def test_a_person_with_an_unknown_address_gets_a_page_and_a_program_a_problem(site: Site) -> None:
    for path in ("/nothing", "/admin/nothing/there", "/s", "/v2/surveys"):
        page = site.client.get(path, headers={"Accept": BROWSER})
        assert (page.status_code, page.mimetype) == (404, "text/html"), path
        assert "There is no such page" in page.text
        assert "nothing" not in page.text
        check_problem(site.client.get(path), 404, "not_found")


@pytest.mark.parametrize("way", ["by the admin", "by its time"])
def test_a_closed_survey_says_so_before_it_asks(fresh_site: Site, way: str) -> None:
    path = f"/s/{fresh_site.survey}"
    assert "modulepreload" in fresh_site.client.get(path, headers={"Accept": BROWSER}).text
    later = NOW + timedelta(days=31 if way == "by its time" else 1)
    if way == "by the admin":
        fresh_site.services.lifecycle.move(fresh_site.survey, "close")
    site = fresh_site.at(later)
    with closing(site.services):
        page = site.client.get(path, headers={"Accept": BROWSER})
        assert page.status_code == 410
        assert "This survey takes no more answers" in page.text
        assert "script" not in page.text
        check_problem(site.client.get(path), 410, "closed")
