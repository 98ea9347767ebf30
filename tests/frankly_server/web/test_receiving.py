# SPDX-License-Identifier: Apache-2.0
"""Fast path of reports, whose responses, logs, counters and stored data equal those of Flask."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.app import create_app
from frankly_server.store import StoreUnavailable
from frankly_server.web import limits, metrics
from frankly_server.web.receiving import Receiving
from frankly_server.web.slots import Slots

from tests.frankly_server.web.bad_reports import BAD_BODIES, BAD_FIELDS, CONTENT_TYPES
from tests.frankly_server.web.site import Hand, Site, captured_logs, make_site


@dataclass
class Way:
    """A site with the fast path (`plain`) or without; `by_flask` counts requests to Flask."""

    site: Site
    by_flask: int = 0

    @classmethod
    def make(cls, home: Path, *, plain: bool, **settings: Any) -> "Way":
        home.mkdir()
        served_site = make_site(home, f"sqlite:///{home / 'frankly.db'}")
        app = create_app(
            served_site.settings.model_copy(update=settings), services=served_site.services
        )
        slots = app.wsgi_app
        assert isinstance(slots, Slots)
        reception = slots._application
        assert isinstance(reception, Receiving)
        way = cls(replace(served_site, client=app.test_client()))
        flask = reception._flask

        def counting(environ: Any, start_response: Any) -> Any:
            way.by_flask += 1
            return flask(environ, start_response)

        reception._flask = counting
        if not plain:
            app.wsgi_app = counting  # type: ignore[method-assign]
        return way

    def ask(self, request: "Request") -> dict[str, Any]:
        """Return all visible parts of the response and its effects."""
        counters = metrics.of(self.site.client.application)
        with captured_logs() as lines:
            answer = request(self.site)
        logged = [json.loads(line) for line in lines.getvalue().splitlines()]
        assert all(line.pop("duration") for line in logged)
        return {
            "status": answer.status,
            "headers": list(answer.headers),
            "body": answer.data.replace(self.site.survey.encode(), b"S"),
            "log": logged,
            "answers": dict(counters._answers),
            "limited": dict(counters._limited),
            "in flight": counters._in_flight,
            "refused": self.site.services.intake.refusals(self.site.survey),
        }


Request = Callable[[Site], Any]


class Gone(io.RawIOBase):
    """A body whose sender has disconnected."""

    def __init__(self, error: type[Exception]) -> None:
        self._error = error

    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: Any) -> int:
        raise self._error

    def read(self, _size: int | None = -1) -> bytes:
        raise self._error


def post(data: Any, **options: Any) -> Request:
    """Return a request with a report, from bytes or from changes of fields."""

    def send(site: Site) -> Any:
        return site.send(data if isinstance(data, bytes) else site.report(7, **data), **options)

    return send


def to(path: str, method: str = "POST") -> Request:
    def send(site: Site) -> Any:
        where = path.replace("S", site.survey)
        return site.client.open(
            where, method=method, data=json.dumps(site.report(7)), content_type="application/json"
        )

    return send


def compact(number: int, token: str | None = None) -> Request:
    """Return a request with a report in the exact format of our SDKs."""

    def send(site: Site) -> Any:
        return site.send(
            json.dumps(site.report(number, token=token), separators=(",", ":")).encode() + b" " * 30
        )

    return send


def raw(body: bytes, length: str, **environ: Any) -> Request:
    def send(site: Site) -> Any:
        environ_fields = {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": length}
        return site.send(b"", environ_overrides={**environ_fields, **environ})

    return send


# The requests are sent in this order. Flask must not be called for PLAIN, and must be called for
# OTHERS.
PLAIN: dict[str, Request] = {
    "a report": post({}),
    "the same again": post({}),
    "as SDKs write it": compact(8),
    "again as SDKs write it": compact(8),
    "from a page of another origin": post(
        {"id": "a" * 32}, headers={"Origin": "https://pages.example"}
    ),
    "with an empty query": to("/v1/surveys/S/reports?"),
    "with irrelevant headers": post(
        {"id": "b" * 32},
        headers={"Cookie": "a=b", "Authorization": "Bearer x", "If-None-Match": "*", "Expect": "x"},
    ),
}
OTHERS: dict[str, Request] = {
    "another under its id": post({"y": [0, 2]}),
    **{f"bad field: {name}": post(changes) for name, (changes, *_) in BAD_FIELDS.items()},
    **{f"bad body: {name}": post(body) for name, (body, *_) in BAD_BODIES.items()},
    **{f"content type: {kind}": post({}, content_type=kind) for kind in CONTENT_TYPES},
    "content type in capitals": post({}, content_type="Application/JSON"),
    "content type with a charset": post({}, content_type="application/json; charset=utf-8"),
    "a token as SDKs write it": compact(9, token="abc"),
    "compressed": post({}, headers={"Content-Encoding": "gzip"}),
    "chunked": post({}, headers={"Transfer-Encoding": "chunked"}),
    "an upgrade": post({}, headers={"Connection": "Upgrade", "Upgrade": "websocket"}),
    "a query": to("/v1/surveys/S/reports?x=1"),
    "a slash more": to("/v1/surveys/S/reports/"),
    "a line break more": to("/v1/surveys/S/reports%0A"),
    "in capitals": lambda site: site.client.post(site.reports_path.upper(), json=site.report(7)),
    "an unknown survey": to(f"/v1/surveys/{'0' * 32}/reports"),
    "no survey": to("/v1/surveys/x/reports"),
    "HEAD": to("/v1/surveys/S/reports", "HEAD"),
    "GET": to("/v1/surveys/S/reports", "GET"),
    "PUT": to("/v1/surveys/S/reports", "PUT"),
    "OPTIONS": to("/v1/surveys/S/reports", "OPTIONS"),
    "a preflight": lambda site: site.client.options(
        site.reports_path,
        headers={"Origin": "https://p.example", "Access-Control-Request-Method": "POST"},
    ),
    "shorter than it says": raw(b'{"v":1', "600"),
    "no body despite its length": raw(b"", "600"),
    "shorter, with wsgi.input_terminated": raw(b'{"v":1', "600", **{"wsgi.input_terminated": True}),
    **{
        f"the client disconnects: {error.__name__}": raw(
            b"", "600", **{"wsgi.input": Gone(error), "wsgi.input_terminated": True}
        )
        for error in (ConnectionResetError, BrokenPipeError, ValueError)
    },
    "no length": raw(b"{}", ""),
    "an invalid length": raw(b"{}", "-1"),
    "a length in other digits": raw(b"{}", "²"),
    "a length of 5,000 digits": raw(b"{}", "1" * 5000),
    "a batch": lambda site: site.send(
        {"reports": [site.report(110)]}, content_type="application/vnd.frankly.batch+json"
    ),
    "another address": lambda site: site.client.get("/health"),
}


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Way, Way]]:
    """A site with the fast path and a site with Flask alone; both have received the same requests."""
    home = tmp_path_factory.mktemp("ways")
    both_ways = Way.make(home / "plain", plain=True), Way.make(home / "flask", plain=False)
    yield both_ways
    for way in both_ways:
        way.site.services.close()


@pytest.mark.parametrize("name", [*PLAIN, *OTHERS])
def test_both_ways_answer_the_same(ways: tuple[Way, Way], name: str) -> None:
    request = PLAIN.get(name) or OTHERS[name]
    first, flask = ways
    before = first.by_flask
    first_answer = first.ask(request)
    assert first_answer == flask.ask(request)
    assert first.by_flask - before == (name not in PLAIN)
    assert first_answer["status"][0] == "2" or name not in PLAIN


def fails(error: BaseException) -> Request:
    """Return a request during which `accept` raises an error."""

    def send(site: Site) -> Any:
        def broken(*_: Any) -> Any:
            raise error

        accept = site.services.intake.accept
        site.services.intake.accept = broken  # type: ignore[assignment, method-assign]
        try:
            return site.send(site.report(20))
        finally:
            site.services.intake.accept = accept  # type: ignore[method-assign]

    return send


class Late:
    """A body that does not arrive in time."""

    def read(self, *_: Any) -> bytes:
        raise InvalidInput(Problem.TIMED_OUT, "late")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (fails(RuntimeError("canary")), 500),
        (fails(StoreUnavailable("x")), 503),
        (raw(b"", "6", **{"wsgi.input": Late()}), 408),
    ],
)
def test_errors_have_the_same_response(
    ways: tuple[Way, Way], request_: Request, status: int
) -> None:
    first, flask = (way.ask(request_) for way in ways)
    assert first == flask
    assert first["status"].startswith(str(status))
    assert "canary" not in str(first["log"])


def test_the_limit_is_the_same_and_charged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand, original_limits = Hand(), limits.RateLimits
    monkeypatch.setattr(limits, "RateLimits", lambda settings: original_limits(settings, now=hand))
    ways_of_request = [
        Way.make(tmp_path / str(is_plain), plain=is_plain, survey_rate_per_s=0.3)
        for is_plain in (True, False)
    ]
    statuses = []
    for number, seconds in ((0, 0), (1, 0), (1, 0), (2, 0), (2, 3), (2, 4), (2, 0), (2, 0)):
        hand.now += seconds
        first, flask = (
            way.ask(lambda site, number=number: site.send(site.report(number)))
            for way in ways_of_request
        )
        assert first == flask
        statuses.append(int(first["status"][:3]))
    assert statuses == [201, 201, 200, 429, 429, 201, 200, 429]
    for way in ways_of_request:
        way.site.services.close()


def test_a_slow_refusal_is_logged_with_all_its_time(
    ways: tuple[Way, Way], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logged time includes the time before Flask takes over."""
    site = ways[0].site
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def slow(*_: Any) -> Any:
        now[0] += 2.0
        raise StoreUnavailable("x")

    monkeypatch.setattr(site.services.intake, "accept", slow)
    with captured_logs() as lines:
        assert site.send(site.report(30)).status_code == 503
    assert json.loads(lines.getvalue())["duration"] == "<=3s"
