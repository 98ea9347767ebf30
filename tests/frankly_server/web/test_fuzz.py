# SPDX-License-Identifier: Apache-2.0
"""Generated requests: no status of 5xx, only statuses that OpenAPI declares, and a problem object
for every error."""

import json
from typing import Any

import pytest
from frankly_server.keys.access import link_secret
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.frankly_server.web.generated import BODIES, JSON_VALUES, check
from tests.frankly_server.web.site import Site
from tests.frankly_server.web.test_plan_route import FILE

PLAN_FIELDS = (
    "solve_for",
    "n",
    "margin",
    "epsilon",
    "level",
    "weights",
    "bits",
    "answers",
    "notion",
    "method",
    "prior",
)
FILE_FIELDS = (
    "margin",
    "n",
    "level",
    "response_rate",
    "population",
    "group_share",
    "random",
    "groups",
    "power",
)
ARM_FIELDS = ("clear", "epsilon", "mechanism", "share", "shares")
CONTENT_TYPES = st.sampled_from(
    ["application/json"] * 6
    + ["application/vnd.frankly.batch+json"] * 3
    + [
        "application/json; charset=utf-8",
        "text/plain",
        "",
        "application/json; charset=x",
        ";;;",
        "a/b; charset*=''",
    ]
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "Accept",
            "If-None-Match",
            "Range",
            "Expect",
            "X-Forwarded-For",
            "Content-Encoding",
            "Cookie",
        ]
    ),
    st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=20),
    max_size=3,
)
QUERY = st.lists(
    st.tuples(
        st.sampled_from(["level", "census", "digest", "simultaneous"]) | st.text(max_size=8),
        st.text(max_size=12),
    ),
    max_size=4,
)
ID = st.sampled_from(["SURVEY"] * 5 + ["0" * 32]) | st.text(
    st.characters(codec="utf-8", exclude_characters="/?#"), min_size=1, max_size=40
)


def examples(request: pytest.FixtureRequest, normal: int, all_of_them: int) -> int:
    return all_of_them if request.config.getoption("--full") else normal


def test_no_get_request_causes_a_server_error(
    request: pytest.FixtureRequest, site: Site, spec: dict[str, Any]
) -> None:
    owner = site.services.access.create("owner", "fuzz")
    paths = sorted(path for path, found in spec["paths"].items() if "get" in found)
    known_parts = {
        "survey_id": site.survey,
        "digest": site.digest,
        "name": "index.js",
        "job_id": "0" * 32,
        "version": "1",
        "secret": link_secret(site.services.access.create("reader", "fuzz", surveys=[site.survey])),
    }

    @settings(
        max_examples=examples(request, 100, 20_000),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        path=st.sampled_from(paths),
        part=ID,
        query=QUERY,
        headers=HEADERS,
        key=st.sampled_from(["", "analyst", "owner", "x"]),
    )
    def run(
        path: str, part: str, query: list[tuple[str, str]], headers: dict[str, str], key: str
    ) -> None:
        known = {"analyst": site.analyst_key, "owner": owner}.get(key, key)
        sent = headers | ({"Authorization": f"Bearer {known}"} if key else {})
        filled = path
        for name, value in known_parts.items():
            filled = filled.replace(f"{{{name}}}", value if part == "SURVEY" else part)
        assert "{" not in filled or "{" in part
        check(spec, path, "GET", site.client.get(filled, query_string=query, headers=sent))

    run()


def test_no_other_body_causes_a_server_error(
    request: pytest.FixtureRequest, site: Site, spec: dict[str, Any]
) -> None:
    """Plans and cosignatures are sent as garbage and as nearly valid JSON."""
    plans = st.fixed_dictionaries({}, optional=dict.fromkeys(PLAN_FIELDS, JSON_VALUES))
    shares = JSON_VALUES | st.floats(0, 1)
    valid = {"clear": st.just(True), "share": shares} | {"shares": st.lists(shares, max_size=3)}
    arm = st.fixed_dictionaries(
        {}, optional={name: valid.get(name, JSON_VALUES) for name in ARM_FIELDS}
    )
    clear = st.fixed_dictionaries({"clear": st.just(True), "share": st.floats(0, 1)})
    fields = dict.fromkeys(("target", "chance", "n", "power", "level", "x"), JSON_VALUES)
    splits = st.fixed_dictionaries(
        {"choices": st.just(2), "arms": st.lists(arm | clear, min_size=2, max_size=2)},
        optional=fields,
    )
    numbers = JSON_VALUES | st.floats(0, 1) | st.integers(1, 10**12)
    files = st.fixed_dictionaries(
        {"survey": JSON_VALUES | st.just(FILE)}, optional=dict.fromkeys(FILE_FIELDS, numbers)
    )
    paths = ("/v1/plan", "/v1/plan/split", "/v1/plan/survey", "/v1/log/cosignatures")

    @settings(
        max_examples=examples(request, 60, 5_000),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        path=st.sampled_from(paths),
        body=BODIES | plans | splits | files,
        content_type=CONTENT_TYPES,
        headers=HEADERS,
    )
    def run(path: str, body: Any, content_type: str, headers: dict[str, str]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = (
            "text/plain"
            if path.endswith("cosignatures") and content_type == "application/json"
            else content_type
        )
        sent = headers | {"Authorization": f"Bearer {site.analyst_key}"}
        check(
            spec, path, "POST", site.client.post(path, data=data, content_type=kind, headers=sent)
        )

    run()


def test_no_report_causes_a_server_error(
    request: pytest.FixtureRequest, site: Site, spec: dict[str, Any]
) -> None:
    @settings(
        max_examples=examples(request, 150, 30_000),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(survey=ID, body=BODIES, content_type=CONTENT_TYPES, headers=HEADERS)
    def run(survey: str, body: Any, content_type: str, headers: dict[str, str]) -> None:
        if isinstance(body, dict):  # a valid report with some fields replaced, or only those fields
            body = json.dumps(site.report(1) | body["base"] if "base" in body else body).encode()
        if "batch" in content_type:
            body = b'{"reports":[' + body + b"]}"
        path = site.reports_path.replace(site.survey, site.survey if survey == "SURVEY" else survey)
        answer = site.client.post(path, data=body, content_type=content_type, headers=headers)
        check(spec, "/v1/surveys/{survey_id}/reports", "POST", answer)

    run()
