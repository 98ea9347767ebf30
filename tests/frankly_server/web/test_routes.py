# SPDX-License-Identifier: Apache-2.0
"""Routes of documents, keys, health and estimates: access, and headers of every response."""

from typing import Any

import pytest
from frankly_protocol.canonical import digest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.trust.keys import accept_keys
from frankly_server.store import StoreUnavailable

from tests.frankly_server.web.site import NOW, Site, check_problem


def test_the_document_is_signed_by_the_served_keys(site: Site) -> None:
    trusted = accept_keys(site.client.get("/v1/keys").data, NOW)
    envelope = Envelope.from_bytes(site.client.get(site.document_path).data, SURVEY_TYPE)
    payload = envelope.verify(trusted.publisher.keys, trusted.publisher.threshold)
    document = SurveyDocument.parse(payload)
    document.require_private()
    assert (document.survey, digest(payload)) == (site.survey, site.digest)


def test_a_document_by_digest_is_the_same_bytes_and_may_be_cached(site: Site) -> None:
    pinned = site.client.get(f"{site.document_path}?digest={site.digest}")
    assert pinned.data == site.client.get(site.document_path).data
    assert pinned.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_health(site: Site) -> None:
    answer = site.client.get("/health")
    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


# Path (S is the survey) -> (status, code).
BAD_PATHS: dict[str, tuple[int, str]] = {
    "/?x=1": (422, "field_unknown"),
    "/v1": (404, "not_found"),
    "/v1/keys/": (404, "not_found"),
    "//v1/keys": (404, "not_found"),
    "/v1/../v1/keys": (404, "not_found"),
    "/v1/keys?x=1": (422, "field_unknown"),
    "/health?" + "&".join(f"p{i}=1" for i in range(10_000)): (400, "bad_request"),
    "/health?x=" + "a" * 8000: (400, "bad_request"),
    "/v1/surveys/S/document?digest=sha256:" + "0" * 64: (404, "survey_unknown"),
    "/v1/surveys/S/document?digest=sha256:xyz": (422, "field_type"),
    "/v1/surveys/S/document?digest=": (422, "field_type"),
    "/v1/surveys/S/document?digest=a&digest=b": (400, "bad_request"),
    "/v1/surveys/" + "0" * 32 + "/document": (404, "survey_unknown"),
    "/v1/surveys/%00/document": (404, "survey_unknown"),
    "/v1/surveys/" + "0" * 31 + "%0a/document": (404, "survey_unknown"),
    "/v1/surveys/..%2f..%2fetc%2fpasswd/document": (404, "not_found"),
    "/app.py": (404, "not_found"),
    "/static/app.py": (404, "not_found"),
}


@pytest.mark.parametrize("path", BAD_PATHS)
def test_bad_paths_and_queries(site: Site, path: str) -> None:
    check_problem(site.client.get(path.replace("S", site.survey)), *BAD_PATHS[path])


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
)
@pytest.mark.parametrize(
    "path", ["/health", "/openapi.json", "/v1/keys", "S/document", "S/estimates", "S/reports"]
)
def test_other_methods_are_405_with_allow(site: Site, path: str, method: str) -> None:
    if (path, method) == ("S/reports", "POST"):
        return
    answer = site.client.open(path.replace("S/", f"/v1/surveys/{site.survey}/"), method=method)
    check_problem(answer, 405, "method_not_allowed")
    assert set(answer.headers["Allow"].split(", ")) == (
        {"POST"} if path == "S/reports" else {"GET", "HEAD"}
    )


# Name -> (Authorization header, status, code).
BAD_KEYS: dict[str, tuple[str | None, int, str]] = {
    "none": (None, 401, "unauthenticated"),
    "empty": ("", 401, "unauthenticated"),
    "another scheme": ("Basic dTpw", 401, "unauthenticated"),
    "no key": ("Bearer ", 401, "unauthenticated"),
    "malformed": ("Bearer canary-7f3a9", 401, "unauthenticated"),
    "unknown": ("Bearer frankly_live_" + "A" * 43, 401, "unauthenticated"),
    "not ASCII": ("Bearer frankly_live_\xe9", 401, "unauthenticated"),
    "two keys": ("Bearer a b", 401, "unauthenticated"),
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_estimates_need_a_key(site: Site, name: str) -> None:
    header, status, code = BAD_KEYS[name]
    answer = site.client.get(
        site.estimates_path, headers={} if header is None else {"Authorization": header}
    )
    check_problem(answer, status, code)
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="frankly"'


@pytest.mark.parametrize(
    ("scheme", "status"),
    [("Bearer", 200), ("bearer", 200), ("Basic", 401), ("Digest", 401), ("Token", 401), ("", 401)],
)
def test_a_key_is_accepted_only_with_its_scheme(site: Site, scheme: str, status: int) -> None:
    """By RFC 9110, 11.1, a scheme's name is case-insensitive."""
    key = site.services.access.create("analyst", "notebook")
    headers = {"Authorization": f"{scheme} {key}".strip()}
    assert site.client.get(site.estimates_path, headers=headers).status_code == status


def test_a_revoked_key_is_401_and_another_role_403(site: Site) -> None:
    key = site.services.access.create("analyst", "leaves")
    assert site.estimates(key=key).status_code == 200
    site.services.access.revoke(site.services.access.authenticate(key).prefix)
    check_problem(site.estimates(key=key), 401, "unauthenticated")
    for key, status in ((site.analyst_key, 403), (site.admin_key, 200)):
        headers = {"Authorization": f"Bearer {key}"}
        answer = site.client.get(f"/v1/surveys/{site.survey}/webhook", headers=headers)
        assert answer.status_code == status
        assert site.estimates(key=key).status_code == 200


@pytest.mark.parametrize(
    "level", ["0", "1", "95", "1.0", "0.0", "-0.5", "nan", "inf", "1e-3", "0,95", "", "٠.٩", " 0.9"]
)
def test_levels_outside_zero_and_one_are_explained(site: Site, level: str) -> None:
    body = check_problem(site.estimates(f"?level={level}"), 422, "confidence_range")
    assert "0.95" in body["detail"]


@pytest.mark.parametrize("query", ["?census=yes", "?census=", "?simultaneous=1"])
def test_flags_are_true_or_false(site: Site, query: str) -> None:
    check_problem(site.estimates(query), 422, "field_type")


def test_estimates_of_an_unknown_survey(site: Site) -> None:
    answer = site.client.get(
        f"/v1/surveys/{'0' * 32}/estimates", headers={"Authorization": f"Bearer {site.analyst_key}"}
    )
    check_problem(answer, 404, "survey_unknown")


HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@pytest.mark.parametrize(
    "path", ["/health", "/v1/keys", "/openapi.json", "S/document", "S/estimates", "S/reports", "/x"]
)
def test_every_response_has_the_same_headers_and_no_identifier(site: Site, path: str) -> None:
    marks = {
        "If-None-Match": "*",
        "Cookie": "session=x",
        "If-Modified-Since": "Mon, 01 Jan 2001 00:00:00 GMT",
    }
    answer = site.client.get(path.replace("S/", f"/v1/surveys/{site.survey}/"), headers=marks)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert not {"Set-Cookie", "ETag", "Last-Modified", "Server", "Location", "Vary"} & set(
        answer.headers.keys()
    )
    assert answer.status_code != 304


def test_a_database_that_is_down_is_503_with_retry_after(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_arguments: Any) -> Any:
        raise StoreUnavailable("accept report")

    monkeypatch.setattr(site.services.intake, "accept", down)
    answer = site.send(site.report(20))
    check_problem(answer, 503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0


def test_an_internal_error_reveals_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: Any) -> Any:
        raise RuntimeError("canary-7f3a9")

    monkeypatch.setattr(site.services.intake, "accept", broken)
    check_problem(site.send(site.report(21)), 500, "internal")
