# SPDX-License-Identifier: Apache-2.0
"""Logs with an allow-list: every part of a request contains a canary, and no log line does."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from frankly_server.web import logs

from tests.frankly_server.web.site import Site, captured_logs

CANARY = "canary9f2c"
ADDRESS = "198.51.100.77"
HEADERS = {"User-Agent": CANARY, "X-Forwarded-For": ADDRESS, "Referer": CANARY, "Cookie": f"a={CANARY}",
           "X-Request-Id": CANARY, "Authorization": f"Bearer {CANARY}"}  # fmt: skip


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Log lines of the process."""
    with captured_logs() as stream:
        yield stream


def ask(site: Site, method: str, path: str, **options: Any) -> Any:
    where = path.replace("S/", f"/v1/surveys/{site.survey}/")
    return site.client.open(
        where, method=method, headers=HEADERS, environ_base={"REMOTE_ADDR": ADDRESS}, **options
    )


REQUESTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("GET", "/health", {}),
    ("GET", f"/{CANARY}", {}),
    ("GET", f"/v1/keys?{CANARY}={CANARY}", {}),
    ("GET", "S/document", {}),
    ("GET", f"S/document?digest={CANARY}", {}),
    ("GET", f"/v1/surveys/{CANARY}/document", {}),
    ("GET", "S/estimates", {}),
    (CANARY.upper(), "/health", {}),
    ("POST", "S/reports", {"data": CANARY, "content_type": "application/json"}),
    (
        "POST",
        "S/reports",
        {"data": json.dumps({CANARY: CANARY}), "content_type": "application/json"},
    ),
    ("POST", "S/reports", {"data": CANARY, "content_type": f"text/{CANARY}"}),
    ("POST", "S/reports", {"data": CANARY * 100_000, "content_type": "application/json"}),
)


def test_no_canary_reaches_a_log(site: Site, lines: io.StringIO) -> None:
    for method, path, options in REQUESTS:
        ask(site, method, path, **options)
    accepted = ask(
        site, "POST", "S/reports", json=site.report(0xCA11A12), content_type="application/json"
    )
    assert accepted.status_code == 201
    written = lines.getvalue()
    assert len(written.splitlines()) == len(
        REQUESTS
    )  # an accepted report has no line, because its time would be that of an answer
    for secret in (CANARY, CANARY.upper(), ADDRESS, site.survey, site.digest, "ca11a12"):
        assert secret not in written
    for line in map(json.loads, written.splitlines()):
        assert set(line) <= logs.FIELDS
        assert {"route", "method", "status", "duration"} <= set(line)


def test_an_error_is_logged_by_type_and_place_only(
    site: Site, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: Any) -> Any:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(site.services.intake, "accept", broken)
    assert (
        ask(
            site, "POST", "S/reports", json=site.report(3), content_type="application/json"
        ).status_code
        == 500
    )
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert (line["error"], line["level"], line["code"]) == ("RuntimeError", "error", "internal")
    assert line["where"].startswith("tests.frankly_server.web.test_logs:")
    assert CANARY not in lines.getvalue()


def test_messages_of_libraries_are_logged_without_their_values(lines: io.StringIO) -> None:
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("waitress").exception("Exception when servicing %r", CANARY)
    logging.getLogger("urllib3").warning("Retrying after %s", CANARY)
    logging.getLogger("werkzeug").info("%s - GET /", ADDRESS)
    assert CANARY not in lines.getvalue()
    first, second = map(json.loads, lines.getvalue().splitlines())
    assert (first["logger"], first["error"]) == ("waitress", "ValueError")
    assert (second["logger"], second["error"]) == ("urllib3", "warning")


def test_fields_off_the_list_are_dropped(lines: io.StringIO) -> None:
    structlog.get_logger("frankly.test").info("request", path=CANARY, status=200)
    assert json.loads(lines.getvalue()) == {"event": "request", "level": "info", "status": 200}


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, "<=0.001s"), (0.001, "<=0.001s"), (0.02, "<=0.03s"), (10.0, "<=10s"), (99.0, ">10s")],
)
def test_durations_are_coarse(seconds: float, bucket: str) -> None:
    assert logs.duration_bucket(seconds) == bucket
