# SPDX-License-Identifier: Apache-2.0
"""Servers with separate keys and logs, behind a relay on the page's origin, and visits to these servers."""

from dataclasses import dataclass, field, replace
from typing import Any

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SigningKey
from frankly_protocol.trust import KeysDocument, NamedKey, write_chain
from frankly_protocol.trust.notes import LOG
from playwright.sync_api import Page

from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.samples import (
    NOW,
    PUBLISHER,
    ROOT,
    keys_document,
    ldp_block,
    sealed,
    sealed_keys,
    survey,
)
from tests.frankly_protocol.trust.samples import FakeLog, role

AT = int(NOW.timestamp() * 1000)
SURVEY = "ab" * 16
OPEN, TRY = program("open"), program("try")
JSON, TEXT, BYTES = "application/json", "text/plain", "application/octet-stream"
FORMER = [f"sha256:{i:064x}" for i in range(20)]
"""Digests of other documents in a log."""


@dataclass
class Server:
    """A server with separate keys, behind a relay on the page's origin."""

    wire: Wire
    name: str
    root: SigningKey = ROOT
    publisher: SigningKey = PUBLISHER
    log: FakeLog = field(default_factory=lambda: FakeLog(list(FORMER[:2])))
    chain: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.chain:
            self.rotate(1)

    @property
    def relay(self) -> str:
        """URL of this server at the relay."""
        return f"{self.wire.origin}/{self.name}"

    def put(self, path: str, kind: str, body: bytes) -> None:
        """Serve a body at this path."""
        self.wire.answers[f"/{self.name}{path}"] = (kind, body)

    def keys(self, version: int) -> KeysDocument:
        """Return a version of the server's keys document."""
        log_key = NamedKey(self.log.origin, self.log.key.public, LOG)
        named = replace(role(), log=log_key)
        return replace(keys_document(version, self.root, self.publisher), log=named)

    def rotate(self, *versions: int) -> None:
        """Append these versions to the keys chain and serve it."""
        self.chain += [sealed_keys(self.keys(version), self.root) for version in versions]
        self.put("/v1/keys", JSON, self.chain[-1])
        self.put("/v1/keys/chain", JSON, write_chain(self.chain))

    def show(self, document: SurveyDocument, survey_id: str = SURVEY) -> str:
        """Log and serve a document that collects at this server; return the link without a pin."""
        collect = f"https://{self.name}.example/v1/surveys/{survey_id}/reports"
        served = replace(document, survey=survey_id, collect_url=collect)
        self.put(
            f"/v1/surveys/{survey_id}/document", JSON, sealed(served.payload(), self.publisher)
        )
        self.digest = served.digest
        if served.digest not in self.log.digests:
            self.log.digests.append(served.digest)
        self.publish_log()
        return f"https://{self.name}.example/s/{survey_id}"

    def publish_log(self) -> None:
        """Serve the inclusion proof and the leaves of the log's current tree."""
        tree = self.log.tree()
        self.put(f"/v1/log/proof/{self.digest}", TEXT, self.log.proof(self.digest).to_bytes())
        self.put("/v1/log/leaves", BYTES, b"".join(tree.leaves(tree.size)))

    @property
    def pin(self) -> str:
        """The fragment that pins the document served last."""
        return "#" + self.digest.replace(":", "=")

    @property
    def first(self) -> str:
        """The digest of the first version of the server's keys."""
        return digest_of(self.keys(1).payload())


def stranger(wire: Wire, i: int) -> Server:
    root, publisher, log = (SigningKey.from_raw(bytes([n, i]) * 16) for n in (201, 202, 203))
    return Server(wire, f"stranger{i}", root, publisher, FakeLog(list(FORMER[:3]), key=log))


UNPINNED = {"allowUnpinned": True}
LISTEN = OPEN.replace(
    "events.push(e.name)", "(window.firstError ??= [e.code, e.detail], events.push(e.name))"
).replace("window.events = []", "window.firstError = null, window.events = []")


def opened(
    page: Page, server: Server, link: str, policy: dict[str, Any] = UNPINNED, **options: Any
) -> Any:
    """Open a survey in a new client; return None, or the code of the error."""
    page.evaluate("window.client?.close()")
    visit = {
        "link": link,
        "at": AT,
        "options": {"relay": server.relay, "policy": {"cap": "64"} | policy, **options},
    }
    return page.evaluate(TRY, {"code": LISTEN, "given": visit}).get("code")


def answered(page: Page, **options: Any) -> Any:
    """Answer the open survey; return its status, the error's code, or "hangs" after ten seconds."""
    return page.evaluate(
        """(options) => Promise.race([
          client.answer({affair: 'yes'}, options).then((receipt) => receipt.status, (error) => error.code),
          new Promise((done) => setTimeout(done, 10_000, "hangs")),
        ])""",
        options,
    )


def pieces(page: Page) -> list[str]:
    """Return the digests of the stored evidence."""
    digests: list[str] = page.evaluate(
        "client.evidence().then((all) => all.map((one) => one.digest))"
    )
    return digests


FIRST, SECOND = (
    survey(ldp_block()),
    survey(ldp_block(epsilon="0.5"), version=2, prev="sha256:" + "1" * 64),
)
