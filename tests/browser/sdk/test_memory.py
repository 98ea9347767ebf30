# SPDX-License-Identifier: Apache-2.0
"""What a browser remembers belongs to the chain of keys it came from: another server changes nothing of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SigningKey
from frankly_protocol.trust import KeysDocument, NamedKey, write_chain
from frankly_protocol.trust.notes import LOG
from playwright.sync_api import Page

from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.samples import NOW, PUBLISHER, ROOT, keys_document, ldp_block, sealed, sealed_keys, survey
from tests.frankly_protocol.trust.samples import ORIGIN, FakeLog, role

AT = int(NOW.timestamp() * 1000)
SURVEY = "ab" * 16
OPEN, TRY = program("open"), program("try")
JSON, TEXT, BYTES = "application/json", "text/plain", "application/octet-stream"
FORMER = [f"sha256:{i:064x}" for i in range(20)]
"""Other documents of a log."""


@dataclass
class Server:
    """A server with keys of its own, behind a relay on the page's origin."""

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
        """Where the page finds it."""
        return f"{self.wire.origin}/{self.name}"

    def put(self, path: str, kind: str, body: bytes) -> None:
        """Serve this from now on."""
        self.wire.answers[f"/{self.name}{path}"] = (kind, body)

    def keys(self, version: int) -> KeysDocument:
        """A version of its keys."""
        own = NamedKey(self.log.origin, self.log.key.public, LOG)
        named = replace(role(), log=own)
        return replace(keys_document(version, self.root, self.publisher), log=named)

    def rotate(self, *versions: int) -> None:
        """Go on to these versions of its keys."""
        self.chain += [sealed_keys(self.keys(version), self.root) for version in versions]
        self.put("/v1/keys", JSON, self.chain[-1])
        self.put("/v1/keys/chain", JSON, write_chain(self.chain))

    def show(self, document: SurveyDocument, survey_id: str = SURVEY) -> str:
        """Serve a document of its own, logged; return the link without a pin."""
        collect = f"https://{self.name}.example/v1/surveys/{survey_id}/reports"
        own = replace(document, survey=survey_id, collect_url=collect)
        self.put(f"/v1/surveys/{survey_id}/document", JSON, sealed(own.payload(), self.publisher))
        self.digest = own.digest
        if own.digest not in self.log.digests:
            self.log.digests.append(own.digest)
        self.tell()
        return f"https://{self.name}.example/s/{survey_id}"

    def tell(self) -> None:
        """Show the log as it is now."""
        tree = self.log.tree()
        self.put(f"/v1/log/proof/{self.digest}", TEXT, self.log.proof(self.digest).to_bytes())
        self.put("/v1/log/leaves", BYTES, b"".join(tree.leaves(tree.size)))

    @property
    def pin(self) -> str:
        """What makes the link of the document shown last a pinned one."""
        return "#" + self.digest.replace(":", "=")

    @property
    def first(self) -> str:
        """The digest of the first version of its keys."""
        return digest_of(self.keys(1).payload())


@pytest.fixture
def ours(wire: Wire) -> Server:
    return Server(wire, "ours")


@pytest.fixture
def strangers(wire: Wire) -> Iterator[Server]:
    """Servers without end, each with keys of its own; their logs bear the name of ours."""
    return (stranger(wire, i) for i in count())


def stranger(wire: Wire, i: int) -> Server:
    root, publisher, log = (SigningKey.from_raw(bytes([n, i]) * 16) for n in (201, 202, 203))
    return Server(wire, f"stranger{i}", root, publisher, FakeLog(list(FORMER[:3]), key=log))


UNPINNED = {"allowUnpinned": True}
LISTEN = OPEN.replace("events.push(e.name)", "(window.told ??= [e.code, e.detail], events.push(e.name))").replace(
    "window.events = []", "window.told = null, window.events = []"
)
RENAMED = "the survey's log has another name now; the last head of its old one is kept as evidence"


def opened(page: Page, server: Server, link: str, policy: dict[str, Any] = UNPINNED, **options: Any) -> Any:
    """Open a survey anew; None if that went well, otherwise the code of the error."""
    page.evaluate("window.client?.close()")
    given = {"link": link, "at": AT, "options": {"relay": server.relay, "policy": {"cap": "64"} | policy, **options}}
    return page.evaluate(TRY, {"code": LISTEN, "given": given}).get("code")


def answered(page: Page, **options: Any) -> Any:
    """Answer the survey that is open: what becomes of it."""
    return page.evaluate(
        "(options) => client.answer({affair: 'yes'}, options).then((receipt) => receipt.status, (error) => error.code)",
        options,
    )


def pieces(page: Page) -> list[str]:
    """The digests of what is kept as evidence."""
    found: list[str] = page.evaluate("client.evidence().then((all) => all.map((one) => one.digest))")
    return found


FIRST, SECOND = survey(ldp_block()), survey(ldp_block(epsilon="0.5"), version=2, prev="sha256:" + "1" * 64)


def test_another_server_does_not_erase_what_was_accepted(page: Page, ours: Server, strangers: Iterator[Server]) -> None:
    assert opened(page, ours, ours.show(SECOND)) is None
    assert opened(page, ours, ours.show(FIRST)) == "document_version"
    other = next(strangers)
    assert opened(page, other, other.show(FIRST)) is None
    assert opened(page, ours, ours.show(FIRST)) == "document_version"


def test_another_server_does_not_take_a_surveys_id(page: Page, ours: Server, strangers: Iterator[Server]) -> None:
    other = next(strangers)
    assert opened(page, other, other.show(FIRST)) is None
    assert answered(page) == "sent"
    assert opened(page, ours, ours.show(FIRST)) is None
    assert page.evaluate("client.answered()") is None
    assert answered(page) == "sent"
    assert page.evaluate("client.store.spent().then((all) => all.length)") == 2  # one budget for both
    assert answered(page) == "already_answered"
    ids = page.evaluate("client.store.all('answers').then((all) => all.map((one) => one.chain))")
    assert sorted(ids) == sorted((ours.first, other.first))


def test_another_server_does_not_lock_a_log_out(page: Page, ours: Server, strangers: Iterator[Server]) -> None:
    other, watched = next(strangers), {"requireLog": True}
    other.log.digests[:] = FORMER  # larger than ours, under the same name
    assert opened(page, other, other.show(FIRST), watched) is None
    assert other.log.origin == ours.log.origin == ORIGIN
    assert opened(page, ours, ours.show(FIRST), watched) is None
    ours.log.digests.append(FORMER[7])
    assert opened(page, ours, ours.show(FIRST, "cd" * 16), watched) is None
    ours.log.digests[:] = ours.log.digests[1:]  # our own log is still held to what it showed
    assert opened(page, ours, ours.show(FIRST), watched) == "document_version"


def test_other_servers_do_not_fill_the_evidence(page: Page, ours: Server, strangers: Iterator[Server]) -> None:
    for other in (next(strangers) for _ in range(3)):  # the same id, other documents: no contradiction
        assert opened(page, other, other.show(FIRST)) is None
        assert pieces(page) == []
    for i in range(18):  # one of them contradicts itself for as long as it likes
        code = opened(page, other, other.show(replace(FIRST, min_reports=100 + i)))
        assert code == "document_version"
    assert opened(page, ours, ours.show(FIRST)) is None
    assert len(pieces(page)) == 16
    before = ours.digest
    assert opened(page, ours, ours.show(replace(FIRST, min_reports=99))) == "document_version"
    assert opened(page, ours, ours.show(FIRST)) is None
    assert len(pieces(page)) == 18
    assert {before, digest_of(own(FIRST, ours, 99))} <= set(pieces(page))


def own(document: SurveyDocument, server: Server, min_reports: int) -> bytes:
    """The payload that a server makes of a document."""
    collect = f"https://{server.name}.example/v1/surveys/{SURVEY}/reports"
    return replace(document, min_reports=min_reports, collect_url=collect).payload()


def test_one_survey_by_every_link_is_one_answer(page: Page, ours: Server) -> None:
    ours.rotate(2, 3)
    link = ours.show(FIRST)
    shipped = {version: list(ours.chain[version - 1]) for version in (1, 2, 3)}
    assert opened(page, ours, link) is None
    assert answered(page) == "sent"
    for pin in ("", ours.pin):
        assert opened(page, ours, link + pin) is None
        assert answered(page) == "already_answered"
        for keys in shipped.values():
            page.evaluate("(keys) => { window.keys = new Uint8Array(keys); window.client.close(); }", keys)
            given = {"link": link + pin, "at": AT, "options": {"relay": ours.relay, "policy": UNPINNED}}
            page.evaluate(OPEN.replace("...options", "...options, keys: window.keys"), given)
            assert page.evaluate("client.chain") == ours.first
            assert answered(page) == "already_answered"


def test_a_first_visit_costs_no_request_more(page: Page, wire: Wire, ours: Server) -> None:
    def asked() -> list[str]:
        found = [path.partition("/v1/")[2] for path, _ in wire.asked if path.startswith("/ours/")]
        wire.asked.clear()
        return found

    ours.rotate(2)
    link = ours.show(FIRST)
    assert opened(page, ours, link + ours.pin) is None
    assert asked() == ["keys/chain", f"surveys/{SURVEY}/document?digest={ours.digest}"]
    assert opened(page, ours, link + ours.pin) is None
    assert asked() == []
    assert opened(page, ours, link) is None
    assert asked() == ["keys", f"surveys/{SURVEY}/document"]
    ours.rotate(3, 4)
    assert opened(page, ours, link) is None
    assert asked() == ["keys", "keys/chain", f"surveys/{SURVEY}/document"]


def forged(ours: Server, other: Server) -> list[bytes]:
    """Our version 1, and a version 2 of a stranger's root."""
    return [ours.chain[0], sealed_keys(other.keys(2), other.root)]


# What a stranger serves as its chain to pass for us -> the field of document_keys.
CLAIMS = {
    "our first version, its own second one": (forged, "signatures"),
    "no first version": (lambda ours, other: [sealed_keys(other.keys(2), other.root)], "chain"),
    "nothing": (lambda ours, other: [], "chain"),
    "a gap": (lambda ours, other: [*other.chain, sealed_keys(other.keys(3), other.root)], "version"),
    "another order": (lambda ours, other: [sealed_keys(other.keys(2), other.root), *other.chain], "chain"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_first_root_is_proven_and_never_claimed(page: Page, ours: Server, name: str, wire: Wire) -> None:
    serve, wanted = CLAIMS[name]
    assert opened(page, ours, ours.show(SECOND)) is None
    other = stranger(wire, 0)
    link = other.show(FIRST)
    other.put("/v1/keys/chain", JSON, write_chain(serve(ours, other)))
    page.evaluate("client.close()")
    given = {"link": link, "at": AT, "options": {"relay": other.relay, "policy": UNPINNED}}
    said = page.evaluate(TRY, {"code": OPEN, "given": given})
    assert (said.get("code"), said.get("field")) == ("document_keys", wanted)
    assert opened(page, ours, ours.show(FIRST)) == "document_version"


def test_a_log_under_a_new_name_is_told_and_its_old_head_stays(page: Page, ours: Server) -> None:
    watched = {"requireLog": True}
    assert opened(page, ours, ours.show(FIRST), watched) is None
    assert page.evaluate("events") == ["opened"]
    old = ours.log.proof(ours.digest).signed.to_bytes()
    ours.log.digests[:], ours.log.origin = [], "log.example/second"  # a new tree under a new name
    ours.rotate(2)
    assert opened(page, ours, ours.show(FIRST), watched) is None
    assert page.evaluate("events") == ["log_renamed", "opened"]
    assert page.evaluate("told") == ["log_renamed", RENAMED]
    assert pieces(page) == [digest_of(old)]
    ours.log.digests.append(FORMER[5])
    assert opened(page, ours, ours.show(FIRST), watched) is None
    assert page.evaluate("events") == ["opened"]
    ours.log.digests[:] = [ours.digest]
    ours.tell()
    assert opened(page, ours, ours.show(FIRST), watched) == "document_version"


# The database as version 1 of the SDK left it: an alias's keys, one survey, its answer, a head, a proof, evidence.
VERSION_1 = """async ({alias, keys, survey, digest, envelope, head, size, cost, state, url}) => {
  const stores = ["keys", "surveys", "answers", "checkpoints", "proofs", "evidence", "salt"];
  const bytes = (list) => new Uint8Array(list), ratio = (pair) => pair && pair.map(BigInt);
  const request = indexedDB.open("frankly", 1);
  request.onupgradeneeded = () => stores.forEach((name) => request.result.createObjectStore(name));
  const db = await new Promise((done) => { request.onsuccess = () => done(request.result); });
  const tx = db.transaction(stores, "readwrite"), put = (name, value, key) => tx.objectStore(name).put(value, key);
  put("keys", bytes(keys), alias); // of frankly.keys/1: no version of the SDK reads both
  put("surveys", {version: 2, digest, envelope: bytes(envelope)}, survey);
  const {level, ceiling, free, freeDelta} = cost;
  put("answers", {survey, respondent: "", digest, url, id: "0".repeat(32), body: state === "sealed" ? bytes([1, 2]) : null,
    state, code: "", level: ratio(level), ceiling: ratio(ceiling), ...(freeDelta && {free: ratio(free), freeDelta: ratio(freeDelta)})}, ["", survey]);
  put("checkpoints", {size, note: bytes(head)}, "log.example/frankly");
  put("evidence", {digest, data: bytes(envelope)}, digest);
  await new Promise((done) => { tx.oncomplete = done; });
  db.close();
}"""
COST = {"level": [2, 1], "ceiling": [3, 1], "free": [5, 2], "freeDelta": [1, 1000]}


def as_in_version_1(page: Page, server: Server, state: str = "sent", **cost: Any) -> None:
    """Keep version 2 of the survey, answered, as the SDK did before it knew chains."""
    server.show(SECOND)
    _, envelope = server.wire.answers[f"/{server.name}/v1/surveys/{SURVEY}/document"]
    head = server.log.proof(server.digest).signed
    given = {"alias": f"https://{server.name}.example", "survey": SURVEY, "digest": server.digest, "state": state}
    given |= {"keys": list(b"{}"), "envelope": list(envelope or b""), "head": list(head.to_bytes())}
    given |= {"size": head.checkpoint.size, "cost": cost or COST, "url": f"https://{server.name}.example/in"}
    page.evaluate(VERSION_1, given)


def test_what_version_1_kept_still_binds_its_own_chain(page: Page, ours: Server) -> None:
    as_in_version_1(page, ours)
    assert opened(page, ours, ours.show(FIRST)) == "document_version"
    assert opened(page, ours, ours.show(SECOND), {"requireLog": True}) is None
    assert answered(page) == "already_answered"
    assert page.evaluate("client.store.spent().then(([{cost, delta, level}]) => [String(cost), String(delta), level])") == [
        "5,2", "1,1000", None,
    ]  # fmt: skip
    assert len(pieces(page)) == 1
    ours.log.digests[:] = [ours.digest]
    ours.tell()
    assert opened(page, ours, ours.show(SECOND), {"requireLog": True}) == "document_version"


def test_what_version_1_kept_is_a_strangers_neither_to_erase_nor_to_use(
    page: Page, ours: Server, strangers: Iterator[Server]
) -> None:
    as_in_version_1(page, ours)
    other = next(strangers)
    other.log.digests[:] = FORMER
    assert opened(page, other, other.show(FIRST), {"requireLog": True}) is None
    assert len(pieces(page)) == 1
    # Whose answer it was cannot be told, so that nobody gets another one.
    assert answered(page) == "already_answered"
    assert opened(page, ours, ours.show(FIRST)) == "document_version"
    assert opened(page, ours, ours.show(SECOND), {"requireLog": True}) is None
    assert answered(page) == "already_answered"


def test_what_version_1_had_sealed_leaves_and_its_keys_may_have_been_rotated(page: Page, wire: Wire, ours: Server) -> None:
    ours.rotate(2, 3)
    as_in_version_1(page, ours, "sealed", level=[2, 1], ceiling=[3, 1])
    wire.steps[:] = ["503"] * 3
    assert opened(page, ours, ours.show(SECOND) + ours.pin) is None
    assert wire.posted
    assert page.evaluate("client.chain") == ours.first
    assert page.evaluate("client.store.spent().then(([{cost, delta}]) => [String(cost), String(delta)])") == ["3,1", "0,1"]
    page.evaluate("window.client.close()")


# Keys of one respondent.
SPELLINGS = ["Zoé", " Zoé", "Zoé\t", "Zoe\u0301", "\u00a0Zoe\u0301 "]


def test_keys_of_respondents_that_look_the_same_are_one(page: Page, ours: Server) -> None:
    assert opened(page, ours, ours.show(FIRST)) is None
    said = [answered(page, respondent=key) for key in (*SPELLINGS, "zoé", "Zoe", "Zo é")]
    assert said == ["sent", *["already_answered"] * 4, *["sent"] * 3]


def test_a_key_kept_as_it_was_written_is_still_known(page: Page, ours: Server) -> None:
    """Before keys were normalised, each spelling had a ledger of its own."""
    assert opened(page, ours, ours.show(FIRST)) is None
    assert answered(page, respondent="Zoé") == "sent"
    respell = """async () => {
      const {hex, bytesOf} = await import("/sdk/canonical.js"), [row] = await client.store.all("answers");
      const salt = await client.store.get("salt", 0);
      const key = await crypto.subtle.importKey("raw", salt, {name: "HMAC", hash: "SHA-256"}, false, ["sign"]);
      const name = hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytesOf(" Zoé"))));
      await client.store.change("answers", [name, row.chain, "cd".repeat(16)], () => ({...row, respondent: name, survey: "cd".repeat(16)}));
    }"""
    page.evaluate(respell)
    assert opened(page, ours, ours.show(FIRST, "cd" * 16)) is None
    assert answered(page, respondent=" Zoé") == "already_answered"
    spent = "(key) => client.store.respondentNames(key).then((names) => client.store.spent(names)).then((all) => all.length)"
    assert page.evaluate(spent, " Zoé") == 2
    assert page.evaluate(spent, "Zoé") == 1


@pytest.mark.parametrize(("key", "code"), [(" ", "field_missing"), ("\t\u00a0", "field_missing"), (7, "field_type")])
def test_a_key_that_names_nobody_is_refused(page: Page, ours: Server, key: Any, code: str) -> None:
    assert opened(page, ours, ours.show(FIRST)) is None
    assert answered(page, respondent=key) == code
    assert ours.wire.posted == []


# What the browser does when asked not to evict -> how often it is asked by two answers.
PERSIST = {
    "granted": "() => Promise.resolve(true)",
    "denied": "() => Promise.resolve(false)",
    "rejected": "() => Promise.reject(new TypeError())",
    "thrown": "() => { throw new TypeError(); }",
    "never answered": "() => new Promise(() => {})",
    "no promise": "() => undefined",
}


@pytest.mark.parametrize("name", PERSIST)
def test_the_first_seal_asks_for_lasting_storage_and_waits_for_no_answer(page: Page, ours: Server, name: str) -> None:
    page.evaluate(
        f"""() => {{
          window.asked = 0;
          const said = {PERSIST[name]};
          navigator.storage.persist = () => {{ window.asked++; return said(); }};
        }}"""
    )
    assert opened(page, ours, ours.show(FIRST)) is None
    assert page.evaluate("asked") == 0
    assert answered(page) == "sent"
    assert page.evaluate("asked") == 1
    assert opened(page, ours, ours.show(FIRST, "cd" * 16)) is None
    assert answered(page) == "sent"
    assert page.evaluate("asked") == 1


def test_a_browser_without_lasting_storage_seals_all_the_same(page: Page, ours: Server) -> None:
    page.evaluate("Object.defineProperty(navigator, 'storage', {value: undefined})")
    assert opened(page, ours, ours.show(FIRST)) is None
    assert answered(page) == "sent"


# Where a document sends its reports, and the hosts that the app names -> the code; the link's host is ours.example.
COLLECTORS: list[tuple[str, list[str], str | None]] = [
    ("https://ours.example/in", [], None),
    ("https://ours.example:8443/in", [], None),
    ("https://OURS.example/in", [], None),
    ("https://other.example/in", [], "document_host"),
    ("https://other.example/in", ["other.example"], None),
    ("https://other.example/in", ["example", "a.other.example"], "document_host"),
    ("https://a.ours.example/in", [], "document_host"),
    ("http://ours.example/in", [], "insecure_transport"),
    ("http://127.0.0.1:9200/_bulk?x=1", [], "insecure_transport"),
    ("http://127.0.0.1:9200/in", ["127.0.0.1", "127.0.0.1:9200"], "insecure_transport"),
    ("https://localhost/in", ["localhost"], "insecure_transport"),
    ("http://[::1]:9200/in", ["[::1]"], "insecure_transport"),
]


@pytest.mark.parametrize(("address", "hosts", "code"), COLLECTORS)
def test_reports_go_to_the_links_host_or_one_the_app_names(
    page: Page, ours: Server, address: str, hosts: list[str], code: str | None
) -> None:
    link = ours.show(FIRST)
    document = replace(FIRST, collect_url=address)
    ours.put(f"/v1/surveys/{SURVEY}/document", JSON, sealed(document.payload()))
    assert opened(page, ours, link, UNPINNED | {"collectHosts": hosts}) == code
