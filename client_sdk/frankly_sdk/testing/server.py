# SPDX-License-Identifier: Apache-2.0
"""A server without sockets that checks reports like a real one and records all requests."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from frankly_protocol.canonical import parse_json
from frankly_protocol.clock import FixedClock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem, problem_body
from frankly_protocol.report import Report
from frankly_protocol.trust import write_chain
from frankly_protocol.trust.tokens import check_token

from frankly_sdk.aio import Client as AioClient
from frankly_sdk.client import Client
from frankly_sdk.testing.network import JSON, PROBLEM, Network
from frankly_sdk.testing.opening import open_aio_client, open_client
from frankly_sdk.testing.surveys import ORIGIN, Authority
from frankly_sdk.testing.time import FakeClock
from frankly_sdk.transport import Reply

# Limits of a server with default settings.
_BATCH_BYTES, _BATCH_REPORTS = 2 * 2**20, 1000


@dataclass(frozen=True, slots=True)
class Request:
    """One request from a device; body is None for a GET, else one report or a batch."""

    url: str
    body: bytes | None


@dataclass
class FakeServer:
    """A server of one survey that is also the `Transport` of its clients.

    document : see `make_survey`.
    clock : the time of the server and the devices.
    authority : signs keys and document.
    network : decides the result of each request.
    requests : all requests of devices in order, including lost ones.
    reports : the accepted reports by report id.
    """

    document: SurveyDocument
    clock: FakeClock = field(default_factory=FakeClock)
    authority: Authority | None = None
    network: Network = field(default_factory=Network)
    requests: list[Request] = field(default_factory=list)
    reports: dict[str, Report] = field(default_factory=dict)
    _spent: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.authority = self.authority or Authority(FixedClock(self.document.issued))
        self._envelope = self.authority.sign(self.document)

    @property
    def link(self) -> str:
        """The pinned link of the survey."""
        return f"{ORIGIN}/s/{self.document.survey}#{self.document.digest.replace(':', '=')}"

    def open(self, store: str | Path, **options: Any) -> Client:
        """Open a client as an app does, with this server as transport and this server's clock.

        options : passed to `open_client`.
        """
        return open_client(options.pop("link", self.link), store, **(self._ours() | options))

    async def open_aio(self, store: str | Path, **options: Any) -> AioClient:
        """Open a client for asyncio in the same way; `options` are passed to `open_aio_client`."""
        link = options.pop("link", self.link)
        return await open_aio_client(link, store, **(self._ours() | options))

    def _ours(self) -> dict[str, Any]:
        clock = self.clock
        return {
            "transport": self,
            "clock": clock,
            "sleep": clock.sleep,
            "timer": clock.timer,
            "wait": clock.wait,
        }

    def symbols(self, block: int = 0) -> list[Any]:
        """Return the accepted symbols of one block."""
        return [report.symbols[block] for report in self.reports.values()]

    def get(self, url: str, limit: int) -> Reply:
        """Serve the keys or the document; raises ValueError if it is larger than `limit`."""
        self.requests.append(Request(url, None))
        reply = self.network.carry(lambda: self._serve(url), is_report=False)
        if len(reply.body) > limit:
            raise ValueError("the response is larger than the limit")
        return reply

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        """Check a report and store it if it is acceptable."""
        del limit
        self.requests.append(Request(url, body))
        return self.network.carry(
            lambda: self._accept(url, partial(Report.from_bytes, body)), is_report=True
        )

    def post_batch(self, url: str, body: bytes, limit: int) -> Reply:
        """Check the reports of a batch, store those that are acceptable, and return all results."""
        del limit
        self.requests.append(Request(url, body))
        return self.network.carry(lambda: self._accept_batch(url, body), is_report=True)

    def close(self) -> None:
        """Do nothing."""

    def _serve(self, url: str) -> Reply:
        path = url.removeprefix(ORIGIN).partition("?")[0]
        if path == "/v1/keys" and self.authority is not None:
            return Reply(200, JSON, None, self.authority.keys)
        if path == "/v1/keys/chain" and self.authority is not None:
            return Reply(200, JSON, None, write_chain([self.authority.keys]))
        if path == f"/v1/surveys/{self.document.survey}/document":
            return Reply(200, JSON, None, self._envelope)
        return _problem(Problem.NOT_FOUND)

    def _accept_batch(self, url: str, body: bytes) -> Reply:
        if url != self.document.collect_url:
            return _problem(Problem.SURVEY_UNKNOWN)
        try:
            batch = parse_json(body, max_bytes=_BATCH_BYTES, max_depth=5)
        except InvalidInput as error:
            return _problem(error.problem, error.detail, error.field)
        reports = batch.get("reports") if isinstance(batch, dict) else None
        if not isinstance(reports, list) or not 1 <= len(reports) <= _BATCH_REPORTS:
            return _problem(Problem.FIELD_TYPE)
        replies = [self._accept(url, partial(Report.from_json, report)) for report in reports]
        results = [
            json.loads(reply.body)
            if reply.status < 300
            else {"status": "refused", "problem": json.loads(reply.body)}
            for reply in replies
        ]
        return Reply(200, JSON, None, json.dumps({"results": results}).encode())

    def _accept(self, url: str, read: Callable[[], Report]) -> Reply:
        try:
            report = read()
        except InvalidInput as error:
            return _problem(error.problem, error.detail, error.field)
        refused = self._refusal(url, report)
        if refused is not None:
            return refused
        # As in the database, the first report with an id is kept.
        first_report = self.reports.setdefault(report.id, report)
        if first_report != report:
            return _problem(Problem.ID_CONFLICT)
        new = first_report is report
        receipt = {"status": "accepted" if new else "duplicate", "id": report.id}
        return Reply(201 if new else 200, JSON, None, json.dumps(receipt).encode())

    def _refusal(self, url: str, report: Report) -> Reply | None:
        document, now = self.document, self.clock.now()
        # The checks are in the order of the real server, so that codes agree.
        if url != document.collect_url:
            return _problem(Problem.SURVEY_UNKNOWN)
        if report.doc != document.digest:
            return _problem(Problem.DOC_MISMATCH)
        if now < document.opens:
            return _problem(
                Problem.TOO_EARLY, f"it opens at {format_time(document.opens)}", retry_after="60"
            )
        if now > document.closes:
            return _problem(Problem.CLOSED)
        version = document.version_of(report.strata)
        if version is None:
            return _problem(Problem.STRATA_INVALID)
        if not _fits(version, report):
            return _problem(Problem.SYMBOL_UNKNOWN)
        known = version.open_values
        if known.keys() != report.strata.keys() or any(
            value not in known[name] for name, value in report.strata.items()
        ):
            return _problem(Problem.STRATA_INVALID)
        return self._token_refusal(report)

    def _token_refusal(self, report: Report) -> Reply | None:
        try:
            spent = _spend_hash(self.document, report)
        except InvalidInput as error:
            return _problem(error.problem, error.detail, error.field)
        if spent is not None and self._spent.setdefault(spent, report.id) != report.id:
            return _problem(Problem.TOKEN_SPENT)
        return None


def _spend_hash(document: SurveyDocument, report: Report) -> str | None:
    rule = document.token
    source = None if rule is None else report.strata.get(rule.question or "")
    return check_token(rule, document.survey, report.token, source)


def _fits(document: SurveyDocument, report: Report) -> bool:
    try:
        for block, symbol in zip(document.blocks, report.symbols, strict=True):
            block.mechanism.check_symbol(symbol)
    except (InvalidInput, ValueError):
        return False
    return True


def _problem(
    problem: Problem, detail: str = "", field: str | None = None, retry_after: str | None = None
) -> Reply:
    body = problem_body(problem, detail or problem.title, field)
    return Reply(problem.status, PROBLEM, retry_after, json.dumps(body).encode())
