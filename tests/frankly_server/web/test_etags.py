# SPDX-License-Identifier: Apache-2.0
"""ETags, which the server sends only to analysts, because their key identifies them anyway."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.frankly_server.web.site import Site


def ask(site: Site, key: str, query: str = "", **headers: str) -> Any:
    sent = {"Authorization": f"Bearer {key}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return site.client.get(site.estimates_path + query, headers=sent)


def test_the_same_estimates_are_sent_once_until_a_release(fresh_site: Site) -> None:
    site = fresh_site
    for number in range(12):
        assert site.send(site.report(number)).status_code == 201
    site.release()
    first = ask(site, site.analyst_key)
    tag = first.headers["ETag"]
    assert (first.status_code, len(first.data) > 100) == (200, True)
    again = ask(site, site.analyst_key, If_None_Match=tag)
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", tag)
    assert again.headers["Cache-Control"] == "no-store"
    # The tag does not depend on the key.
    assert ask(site, site.admin_key, If_None_Match=f'"x", W/{tag}, {tag}').status_code == 304
    assert ask(site, site.analyst_key, "?level=0.9", If_None_Match=tag).status_code == 200
    assert ask(site, site.analyst_key, "?format=csv", If_None_Match=tag).status_code == 200
    assert site.send(site.report(12)).status_code == 201
    assert ask(site, site.analyst_key, If_None_Match=tag).status_code == 304
    site.release()
    later = ask(site, site.analyst_key, If_None_Match=tag)
    assert (later.status_code, later.headers["ETag"] == tag) == (200, False)


@pytest.mark.parametrize(
    "header", ["If_Match", "If_Range", "If_Modified_Since", "If_Unmodified_Since", "Range"]
)
@pytest.mark.parametrize(
    "value", ["*", '"x"', "Mon, 01 Jan 2001 00:00:00 GMT", "bytes=0-1", "\xe9"]
)
def test_other_conditions_are_ignored(site: Site, header: str, value: str) -> None:
    without_tag = ask(site, site.analyst_key)
    conditional = ask(site, site.analyst_key, **{header: value})
    assert (conditional.status_code, conditional.data) == (200, without_tag.data)


def test_without_a_key_a_tag_reveals_nothing(site: Site) -> None:
    tag = ask(site, site.analyst_key).headers["ETag"]
    for key in ("frankly_live_" + "A" * 43, ""):
        answer = ask(site, key, If_None_Match=tag)
        assert (answer.status_code, "ETag" in answer.headers) == (401, False)


def test_no_address_without_a_key_has_a_tag(site: Site) -> None:
    """The URLs come from the application's URL map, so that new URLs are tested."""
    client: FlaskClient = site.client
    checked_routes = 0
    for rule in client.application.url_map.iter_rules():
        if "GET" not in (rule.methods or ()) or rule.endpoint == "analyst.estimates":
            continue
        path = rule.rule.replace("<survey_id>", site.survey).replace("<digest>", site.digest)
        path = path.replace("<name>", "index.js").replace("<int:version>", "1")
        for value in ("*", '"x"'):
            answer = client.get(path, headers={"If-None-Match": value})
            assert "ETag" not in answer.headers, path
            assert answer.status_code != 304, path
        checked_routes += 1
    assert checked_routes > 20
