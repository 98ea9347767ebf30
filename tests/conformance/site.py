# SPDX-License-Identifier: Apache-2.0
"""Scripted local server, which serves what a test sets and records every request."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SigningKey
from frankly_protocol.trust import KeysDocument, write_chain

from tests.frankly_protocol.samples import keys_document, ldp_block, sealed, sealed_keys, survey
from tests.frankly_protocol.trust.samples import FakeLog, role
from tests.threads import listening

JSON, PROBLEM = "application/json", "application/problem+json"
Reply = tuple[int, str, bytes, dict[str, str]]
Step = Callable[[bytes], Reply | None]
KEYS = replace(keys_document(), log=role())


@dataclass
class Site:
    """The served documents, keys and log; tests change them between commands. A report consumes one `script` step."""

    origin: str
    document: SurveyDocument = field(init=False)
    keys: list[bytes] = field(default_factory=lambda: [sealed_keys(KEYS)])
    envelope: bytes | None = None
    log: FakeLog = field(default_factory=FakeLog)
    override: dict[str, Reply | None] = field(default_factory=dict)
    script: list[Step] = field(default_factory=list)
    requested_paths: list[str] = field(default_factory=list)
    posted: list[bytes] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.show(self.make())

    def make(self, *blocks: Any, **changes: Any) -> SurveyDocument:
        """Return a document whose collect URL is this site."""
        sample = survey(*(blocks or (ldp_block(),)), survey_id=changes.pop("survey_id", "ab" * 16))
        return replace(
            sample, collect_url=f"{self.origin}/v1/surveys/{sample.survey}/reports", **changes
        )

    def show(
        self, document: SurveyDocument, *signers: SigningKey, log: bool = True
    ) -> SurveyDocument:
        """Serve a document from now on, and append it to the log unless `log` is false."""
        self.document, self.envelope = document, sealed(document.payload(), *signers)
        if log:
            self.log.digests.append(document.digest)
        return document

    def rotate(self, document: KeysDocument, *signers: SigningKey) -> None:
        """Serve another version of the keys as the newest version."""
        self.keys.append(sealed_keys(document, *signers))

    def link(self, *, pin: bool = True, digest: str | None = None) -> str:
        """The survey's link."""
        name = (digest or self.document.digest).replace(":", "=")
        return f"{self.origin}/s/{self.document.survey}" + (f"#{name}" if pin else "")

    @property
    def shipped(self) -> str:
        """The first keys document, as shipped with an app."""
        return base64.b64encode(self.keys[0]).decode()

    def get(self, path: str) -> Reply | None:
        """Answer a GET."""
        self.requested_paths.append(path)
        path = path.partition("?")[0]
        if path in self.override:
            return self.override[path]
        if path == "/v1/keys":
            return 200, JSON, self.keys[-1], {}
        if path == "/v1/keys/chain":
            return 200, JSON, write_chain(self.keys), {}
        if path == f"/v1/surveys/{self.document.survey}/document" and self.envelope is not None:
            return 200, JSON, self.envelope, {}
        digest = path.removeprefix("/v1/log/proof/")
        if digest in self.log.digests:
            return 200, "text/plain", self.log.proof(digest).to_bytes(), {}
        if path == "/v1/log/leaves":
            tree = self.log.tree()
            return 200, "application/octet-stream", b"".join(tree.leaves(tree.size)), {}
        return problem(404, "not_found")

    def post(self, body: bytes) -> Reply | None:
        """Answer a report with the next script step, or store it; reports with the same id are
        stored once."""
        self.posted.append(body)
        return self.script.pop(0)(body) if self.script else self.store(body)

    def store(self, body: bytes) -> Reply:
        """Store a report as an honest server does."""
        name = json.loads(body)["id"]
        if self.stored.setdefault(name, body) != body:
            return problem(409, "id_conflict")
        again = self.posted.count(body) > 1
        receipt = {"status": "duplicate" if again else "accepted", "id": name}
        return 200 if again else 201, JSON, json.dumps(receipt).encode(), {}


def problem(status: int, code: str, **headers: str) -> Reply:
    """Return a problem response."""
    return (
        status,
        PROBLEM,
        json.dumps(
            {"type": f"urn:frankly:problem:{code}", "status": status, "code": code}
        ).encode(),
        headers,
    )


def replies(reply: Reply | None) -> Step:
    """Return a step that replies without storing the report; None closes the connection."""
    return lambda _body: reply


def stores_then_hangs_up(site: Site) -> Step:
    """Return a step that stores the report and closes the connection."""

    def step(body: bytes) -> None:
        site.store(body)

    return step


@contextmanager
def serving() -> Iterator[Site]:
    """Serve a site on a local port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(site.get(self.path))

        def do_POST(self) -> None:
            self._send(site.post(self.rfile.read(int(self.headers["Content-Length"]))))

        def _send(self, reply: Reply | None) -> None:
            self.close_connection = True
            if reply is None:
                return  # close the connection without a response
            status, kind, body, headers = reply
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Site(f"http://127.0.0.1:{server.server_port}")
    with listening(server):
        yield site


BAD_INPUT, REFUSED, NETWORK, INTEGRITY = 3, 4, 5, 6
