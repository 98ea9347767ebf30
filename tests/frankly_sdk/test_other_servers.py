# SPDX-License-Identifier: Apache-2.0
"""Isolation of two servers with separate valid keys: one cannot change data stored for the other.

A server whose link was opened once tries four attacks: erase the protection against old versions,
take over a survey's id, lock out a log, and fill the evidence store.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import Charge
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SigningKey
from frankly_protocol.errors import (
    DocumentRejected,
    Equivocation,
    InvalidInput,
    KeyChainError,
    RollbackDetected,
)
from frankly_protocol.trust import LogRole, NamedKey
from frankly_protocol.trust.notes import LOG, WITNESS
from frankly_sdk import (
    AlreadyAnswered,
    BudgetExceeded,
    Event,
    InsecureTransport,
    NetworkError,
    Policy,
    evidence,
)
from frankly_sdk.store import Store

from tests.frankly_protocol.samples import (
    PUBLISHER,
    ROOT,
    STRANGER,
    keys_document,
    ldp_block,
    sealed,
    sealed_keys,
    survey,
)
from tests.frankly_protocol.trust.samples import LOG_KEY, ORIGIN, WITNESS_KEYS, FakeLog
from tests.frankly_sdk.attacks import Server
from tests.refusals import refusal

EVIL_ROOT, EVIL_LOG = (SigningKey.from_raw(bytes([n]) * 32) for n in (41, 42))
FIRST = survey(ldp_block())
SECOND = replace(FIRST, version=2, prev=FIRST.digest)
YES = {"affair": "yes"}


def log_role(name: str = ORIGIN, key: SigningKey = LOG_KEY) -> LogRole:
    """Return a log role with three witnesses."""
    witnesses = tuple(NamedKey(name, key.public, WITNESS) for name, key in WITNESS_KEYS.items())
    return LogRole(NamedKey(name, key.public, LOG), witnesses, 2)


@dataclass
class Place(Server):
    """A server with its own root, publisher, log and origin."""

    document: SurveyDocument = FIRST
    origin: str = "https://collect.example"
    root: SigningKey = ROOT
    publisher: SigningKey = PUBLISHER
    log_name: str = ORIGIN
    log_key: SigningKey = LOG_KEY
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keys = self.version(1)
        self.log = FakeLog([], self.log_name, self.log_key)
        self.show(self.document)

    def version(self, number: int, log_name: str = "") -> bytes:
        """Return a version of the keys document."""
        document = keys_document(number, self.root, self.publisher)
        return sealed_keys(
            replace(document, log=log_role(log_name or self.log_name, self.log_key)), self.root
        )

    def show(self, document: SurveyDocument) -> None:
        """Log a document and serve it from now on."""
        self.document = replace(document, collect_url=f"{self.origin}/in")
        self.envelope = sealed(self.document.payload(), self.publisher)
        if self.document.digest not in self.log.digests:
            self.log.digests.append(self.document.digest)

    def get(self, url: str, limit: int) -> Any:
        """Serve requests under this server's origin."""
        return super().get(url.replace(self.origin, "https://collect.example"), limit)

    def visit(
        self, store: Path, *, pinned: bool = False, answer: bool = False, **options: Any
    ) -> str:
        """Open the link, and answer if `answer` is set; return the status of the receipt."""
        pin = f"#{self.document.digest.replace(':', '=')}" if pinned else ""
        link = f"{self.origin}/s/{self.document.survey}{pin}"
        options = {"policy": Policy(allow_unpinned=True)} | options
        with self.open(store, link=link, on_event=self.events.append, **options) as client:
            return client.answer(YES).status if answer else ""


def evil(**changes: Any) -> Place:
    """Return a server with separate valid keys that uses the names of the other server."""
    defaults: dict[str, Any] = {
        "origin": "https://evil.example",
        "root": EVIL_ROOT,
        "publisher": STRANGER,
        "log_key": EVIL_LOG,
    }
    return Place(**(defaults | changes))


def test_it_cannot_erase_the_protection_against_old_versions(tmp_path: Path) -> None:
    honest = Place(SECOND)
    honest.visit(tmp_path / "s.db")
    honest.show(FIRST)
    for document in (FIRST, SECOND, replace(SECOND, version=10**6)):
        evil(document=document).visit(tmp_path / "s.db")
    with pytest.raises(RollbackDetected):
        honest.visit(tmp_path / "s.db")


@pytest.mark.parametrize("version", [1, 2, 10**6])
def test_it_cannot_take_the_id_of_a_survey(version: int, tmp_path: Path) -> None:
    honest = Place()
    impostor = evil(
        document=replace(FIRST, version=version, prev=None if version == 1 else FIRST.digest)
    )
    assert impostor.visit(tmp_path / "s.db", answer=True) == "sent"
    assert honest.visit(tmp_path / "s.db", answer=True) == "sent"
    assert (len(impostor.posted), len(honest.posted)) == (1, 1)
    with pytest.raises(AlreadyAnswered):
        honest.visit(tmp_path / "s.db", answer=True)


def test_the_budget_counts_over_all_servers(tmp_path: Path) -> None:
    policy = Policy(cap="3", allow_unpinned=True)
    evil(document=survey(ldp_block(epsilon="2"))).visit(
        tmp_path / "s.db", answer=True, policy=policy
    )
    with pytest.raises(BudgetExceeded):
        Place(survey(ldp_block(epsilon="2"))).visit(tmp_path / "s.db", policy=policy)


def test_it_cannot_lock_out_a_log_of_the_same_name(tmp_path: Path) -> None:
    log_required: dict[str, Any] = {"policy": Policy(require_log=True)}
    honest, impostor = Place(), evil()
    honest.visit(tmp_path / "s.db", **log_required)
    impostor.log.digests = [
        *honest.log.digests,
        *(f"sha256:{i:064x}" for i in range(20)),
        impostor.document.digest,
    ]
    impostor.visit(tmp_path / "s.db", **log_required)
    honest.show(SECOND)
    honest.visit(tmp_path / "s.db", **log_required)
    honest.log.digests = honest.log.digests[1:]
    with pytest.raises(RollbackDetected):  # the head of the server's own log is still stored
        honest.visit(tmp_path / "s.db", **log_required)


def test_it_cannot_fill_the_evidence_store(tmp_path: Path) -> None:
    for i in range(12):
        place = evil(
            root=SigningKey.from_raw(bytes([60 + i]) * 32), origin=f"https://evil{i}.example"
        )
        for title in ("one", "two"):
            place.show(replace(FIRST, title={"en": title}))
            try:
                place.visit(tmp_path / "s.db")
            except Equivocation:
                continue
    honest = Place()
    honest.visit(tmp_path / "s.db")
    before = honest.envelope
    honest.show(replace(FIRST, title={"en": "Another"}))
    with pytest.raises(Equivocation):
        honest.visit(tmp_path / "s.db")
    assert {before, honest.envelope} <= {piece.data for piece in evidence(tmp_path / "s.db")}


def test_a_contradiction_is_stored_completely_or_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    for i in range(5):
        store.keep_evidence("sha256:a", {f"sha256:{i}{j}": b"piece" for j in range(3)})
    store.keep_evidence("sha256:a", {"sha256:x": b"one side", "sha256:y": b"the other"})
    assert len(store.evidence()) == 15
    store.keep_evidence("sha256:a", {"sha256:00": b"piece", "sha256:z": b"one more"})
    assert len(store.evidence()) == 16
    store.close()


def test_an_honest_server_leaves_no_evidence_of_another(tmp_path: Path) -> None:
    for i in range(10):
        evil(
            root=SigningKey.from_raw(bytes([60 + i]) * 32), origin=f"https://evil{i}.example"
        ).visit(tmp_path / "s.db")
    assert evidence(tmp_path / "s.db") == []


# One survey under several links


@pytest.mark.parametrize("second", [False, True], ids=["plain", "pinned"])
@pytest.mark.parametrize("first", [False, True], ids=["plain", "pinned"])
@pytest.mark.parametrize("shipped", ["none", "version 1", "version 2"])
@pytest.mark.parametrize("rotated", [False, True], ids=["", "rotated between"])
def test_one_survey_is_one_answer(
    first: bool, second: bool, shipped: str, rotated: bool, tmp_path: Path
) -> None:
    place = Place()
    versions = [place.version(n) for n in (1, 2, 3)]
    place.chain, place.keys = versions[:2], versions[1]
    place.visit(tmp_path / "s.db", pinned=first, answer=True)
    if rotated:
        place.chain, place.keys = versions, versions[2]
    keys = {"none": None, "version 1": versions[0], "version 2": versions[1]}[shipped]
    with pytest.raises(AlreadyAnswered):
        place.visit(tmp_path / "s.db", pinned=second, answer=True, keys=keys)
    assert len(place.posted) == 1


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("shipped", [None, 1, 2])
def test_an_old_install_requests_keys_as_a_new_one_does(
    shipped: int | None, pinned: bool, tmp_path: Path
) -> None:
    """The installs have stored no keys, two versions, or all three versions from another link."""
    place = Place()
    versions = [place.version(n) for n in (1, 2, 3)]
    keys = None if shipped is None else versions[shipped - 1]
    fetched_urls: list[list[str]] = []
    for seen_versions in ([], versions[:2], versions):
        store = tmp_path / f"{len(seen_versions)}.db"
        for link_pinned in (pinned, not pinned) if seen_versions else ():
            place.chain = seen_versions
            other_survey = replace(FIRST, survey="cd" * 16)
            place.show(other_survey)
            place.visit(store, pinned=link_pinned, keys=keys)
        place.chain = versions
        place.show(FIRST)
        place.fetched.clear()
        place.visit(store, pinned=pinned, keys=keys)
        fetched_urls.append(list(place.fetched))
    assert fetched_urls[0] == fetched_urls[1] == fetched_urls[2]
    assert len(fetched_urls[0]) == 2
    assert fetched_urls[0][0].endswith("/v1/keys/chain")


def test_shipped_keys_of_version_1_name_their_chain_themselves(tmp_path: Path) -> None:
    place = Place()
    place.visit(tmp_path / "s.db", pinned=True)
    place.down = ("/v1",)
    place.visit(tmp_path / "s.db", pinned=True, keys=place.keys)


CHAINS: dict[str, tuple[Any, type[Exception]]] = {
    "empty": (lambda _: [], KeyChainError),
    "without its first version": (lambda v: v[1:], KeyChainError),
    "out of order": (lambda v: [v[1], v[0], v[2]], KeyChainError),
    "a gap": (lambda v: [v[0], v[2]], KeyChainError),
    "another's first version": (lambda v: [evil().version(1), *v[1:]], KeyChainError),
    "another's chain": (lambda _: [evil().version(n) for n in (1, 2, 3)], DocumentRejected),
    "shorter than what is shipped": (lambda v: v[:1], RollbackDetected),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_accepted_only_with_a_proof_from_version_1(name: str, tmp_path: Path) -> None:
    """The app ships version 2; the server must prove the chain from version 1 through version 2."""
    bend, error = CHAINS[name]
    place = Place()
    versions = [place.version(n) for n in (1, 2, 3)]
    place.chain, place.keys = bend(versions), versions[2]
    if not place.chain:
        place.chain = [b""]
        error = DocumentRejected
    with pytest.raises(error):
        place.visit(tmp_path / "s.db", keys=versions[1])
    assert Store(tmp_path / "s.db").alias_keys("https://collect.example") is None


def test_keys_trusted_during_another_first_visit_stay_trusted(tmp_path: Path) -> None:
    """Two processes contact two servers under one origin; the chain that was trusted first stays trusted."""
    slow, quick = Place(), evil(origin="https://collect.example")
    serve = slow.get

    def get(url: str, limit: int) -> Any:
        reply = serve(url, limit)
        if url.endswith("/v1/keys/chain"):
            quick.visit(tmp_path / "s.db")
        return reply

    slow.get = get  # type: ignore[method-assign]
    with pytest.raises(KeyChainError):
        slow.visit(tmp_path / "s.db")
    quick.visit(tmp_path / "s.db")


def test_a_fork_below_the_shipped_keys_is_detected(tmp_path: Path) -> None:
    """The root signed two different versions 2 and one version 3 that follows both."""
    place = Place()
    shipped = place.version(2, "another.example/log")
    place.chain = [place.version(n) for n in (1, 2, 3)]
    place.keys = place.chain[-1]
    with pytest.raises(Equivocation):
        place.visit(tmp_path / "s.db", keys=shipped)


# A fork of a chain: former root keys are stolen and used under another origin

NEW_ROOT, THIEFS_ROOT = (SigningKey.from_raw(bytes([n]) * 32) for n in (51, 52))


def rooted(
    number: int, root: SigningKey, *signers: SigningKey, publisher: SigningKey = PUBLISHER
) -> bytes:
    """Return a version of the keys document with another root key."""
    return sealed_keys(
        replace(keys_document(number, root, publisher), log=log_role()), root, *signers
    )


def two_places() -> tuple[Place, Place]:
    """Return a server that replaced its first root key, and a thief's server that forks the chain
    after version 1."""
    honest = Place()
    honest.chain = [honest.version(1), rooted(2, NEW_ROOT, ROOT), rooted(3, NEW_ROOT)]
    thief = evil(root=ROOT)
    branch = [rooted(2, THIEFS_ROOT, ROOT, publisher=STRANGER)]
    branch += [rooted(n, THIEFS_ROOT, publisher=STRANGER) for n in (3, 4, 5)]
    thief.chain = [honest.chain[0], *branch]
    return honest, thief


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_fork_of_a_known_chain_is_refused_under_every_origin(length: int, tmp_path: Path) -> None:
    honest, thief = two_places()
    thief.visit(tmp_path / "fresh.db")  # a new device has nothing to compare the chain with
    honest.visit(tmp_path / "s.db", answer=True)
    thief.chain = thief.chain[:length]
    for keys in (None, honest.chain[0]):
        with pytest.raises(RollbackDetected if length < 3 else Equivocation):
            thief.visit(tmp_path / "s.db", keys=keys)
    honest.chain.append(rooted(4, NEW_ROOT))
    honest.visit(tmp_path / "s.db")
    assert Store(tmp_path / "s.db").alias_keys(thief.origin) is None


def test_a_rotation_is_known_by_every_origin_of_the_chain(tmp_path: Path) -> None:
    honest, _ = two_places()
    versions = honest.chain
    mirror = Place(survey(ldp_block(), survey_id="cd" * 16), origin="https://mirror.example")
    honest.chain = mirror.chain = versions[:1]
    honest.visit(tmp_path / "s.db")
    mirror.visit(tmp_path / "s.db")
    mirror.chain = versions  # the mirror serves newer keys first
    mirror.visit(tmp_path / "s.db")
    known_keys = Store(tmp_path / "s.db").alias_keys(honest.origin)
    assert known_keys is not None
    assert known_keys.envelope == versions[2]
    with pytest.raises(RollbackDetected):  # the newer keys also apply here
        honest.visit(tmp_path / "s.db")
    honest.chain = versions
    honest.visit(tmp_path / "s.db")
    for shipped in versions:  # an older app also follows
        mirror.visit(tmp_path / "s.db", keys=shipped)
    versions.append(rooted(4, NEW_ROOT))
    honest.visit(tmp_path / "s.db")
    mirror.visit(tmp_path / "s.db")


def test_out_of_reach_the_newest_keys_of_the_chain_count(tmp_path: Path) -> None:
    """Version 2 withdraws the publisher; a device that has version 2 ignores the version 1 of its app."""
    place = Place()
    place.visit(tmp_path / "s.db", pinned=True)
    first, document = place.keys, place.document
    place.chain = [first, sealed_keys(keys_document(2, publisher=STRANGER))]
    with pytest.raises(DocumentRejected):
        place.visit(tmp_path / "s.db")
    place.down, place.document = ("/v1",), document
    for keys in (None, first):
        with pytest.raises(NetworkError):
            place.visit(tmp_path / "s.db", pinned=True, keys=keys)


# A log that changes its name


def test_a_renamed_log_is_detected_and_its_old_head_is_stored(tmp_path: Path) -> None:
    place = Place()
    logged: dict[str, Any] = {"policy": Policy(require_log=True)}
    place.visit(tmp_path / "s.db", **logged)
    old = place.log.head().to_bytes()
    place.chain, place.keys = (
        [place.version(1), place.version(2, "b.example/log")],
        place.version(2, "b.example/log"),
    )
    place.log = FakeLog(["sha256:" + "0" * 64, place.document.digest], "b.example/log")
    place.events.clear()
    place.visit(tmp_path / "s.db", **logged)
    place.visit(tmp_path / "s.db", **logged)
    renamed = [event for event in place.events if event.name == "log_renamed"]
    assert [event.code for event in renamed] == ["log_renamed"]
    assert all(name in renamed[0].detail for name in (ORIGIN, "b.example/log"))
    assert [(piece.kind, piece.data) for piece in evidence(tmp_path / "s.db")] == [
        ("checkpoint", old)
    ]
    place.log.digests.pop(0)
    with pytest.raises(RollbackDetected):  # the head of the new tree is also stored
        place.visit(tmp_path / "s.db", **logged)


# Hosts to which reports may be sent


@pytest.mark.parametrize(
    ("link", "collect", "hosts", "error"),
    [
        ("https://collect.example", "https://collect.example:8443/in", (), None),
        ("https://collect.example", "https://other.example/in", (), DocumentRejected),
        ("https://collect.example", "https://other.example/in", ("other.example",), None),
        (
            "https://collect.example",
            "https://x.other.example/in",
            ("other.example",),
            DocumentRejected,
        ),
        ("https://collect.example", "http://127.0.0.1:9200/_bulk?x=1", (), InsecureTransport),
        ("https://collect.example", "https://127.0.0.1/in", ("127.0.0.1",), InsecureTransport),
        ("https://collect.example", "http://[::1]:9200/", (), InsecureTransport),
        ("https://collect.example", "https://localhost/", (), InsecureTransport),
        ("http://127.0.0.1:8000", "http://localhost:8000/in", (), None),
        ("http://127.0.0.1:8000", "https://collect.example/in", (), DocumentRejected),
    ],
)
def test_reports_go_to_the_host_of_the_link(
    link: str, collect: str, hosts: tuple[str, ...], error: Any, tmp_path: Path
) -> None:
    place = Place(origin=link)
    place.document = replace(FIRST, collect_url=collect)
    place.envelope = sealed(place.document.payload())
    policy = Policy(allow_unpinned=True, collect_hosts=hosts)
    if error is None:
        assert place.visit(tmp_path / "s.db", answer=True, policy=policy) == "sent"
        return
    error = refusal(error, place.visit, tmp_path / "s.db", answer=True, policy=policy)
    assert error.field == "collect_url"
    assert place.posted == []


BAD_HOSTS = [
    "other.example",
    ["other.example"],
    ("https://other.example",),
    ("other.example:443",),
    ("Other.example",),
]


@pytest.mark.parametrize("hosts", [*BAD_HOSTS, (5,), None, ("",), ("a b",), ("a/b",)], ids=repr)
def test_hosts_are_a_tuple_of_names(hosts: Any) -> None:
    error = refusal(InvalidInput, Policy, collect_hosts=hosts)
    assert (error.field, "other" in error.detail.lower()) == ("collect_hosts", False)


# Stores of earlier versions

OLD = """
CREATE TABLE keys (origin TEXT PRIMARY KEY, envelope BLOB NOT NULL);
CREATE TABLE surveys (survey TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL, envelope BLOB NOT NULL);
CREATE TABLE evidence (digest TEXT PRIMARY KEY, envelope BLOB NOT NULL);
CREATE TABLE answers (
    survey TEXT NOT NULL, respondent TEXT NOT NULL, digest TEXT NOT NULL, collect_url TEXT NOT NULL,
    report_id TEXT NOT NULL, body BLOB, state TEXT NOT NULL, code TEXT NOT NULL, level TEXT NOT NULL, ceiling TEXT,
    free TEXT, free_delta TEXT NOT NULL DEFAULT '0/1', PRIMARY KEY (respondent, survey)
);
CREATE INDEX outbox ON answers (survey, report_id) WHERE state = 'sealed';
CREATE TABLE salt (salt BLOB NOT NULL);
CREATE TABLE checkpoints (origin TEXT PRIMARY KEY, size INTEGER NOT NULL, note BLOB NOT NULL);
CREATE TABLE proofs (digest TEXT PRIMARY KEY, proof BLOB NOT NULL);
"""


BODIES = [b'{"id":"%s"}' % (digit * 32) for digit in (b"2", b"3")]


def old_store(path: Path, place: Place, version: int = 3, answered: bool = True) -> None:
    """Create a store of an earlier version with a server's document and log, and answers if
    `answered` is set."""
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(OLD)
        document = place.document
        database.execute(
            "INSERT INTO keys VALUES (?, ?)", (place.origin, b'{"of":"an earlier type"}')
        )
        survey_row = (document.survey, document.version, document.digest, place.envelope)
        database.execute("INSERT INTO surveys VALUES (?, ?, ?, ?)", survey_row)
        database.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?)",
            (place.log_name, 2, place.log.head().to_bytes()),
        )
        database.execute(
            "INSERT INTO proofs VALUES (?, ?)",
            (document.digest, place.log.proof(document.digest).to_bytes()),
        )
        rows = [
            (
                document.survey,
                "",
                document.collect_url,
                "",
                None,
                "sent",
                "3/1",
                "5/1",
                None,
                "0/1",
            ),
            (
                "cd" * 16,
                "",
                "https://collect.example/in",
                "2" * 32,
                BODIES[0],
                "sealed",
                "3/1",
                None,
                "7/2",
                "1/100",
            ),
            (
                "ef" * 16,
                "",
                "https://collect.example/in",
                "3" * 32,
                BODIES[1],
                "sealed",
                "3/1",
                None,
                None,
                "0/1",
            ),
        ]
        for row in rows if answered else []:
            database.execute(
                "INSERT INTO answers VALUES (?, ?, 'sha256:0', ?, ?, ?, ?, '', ?, ?, ?, ?)", row
            )
        if version == 2:
            for column in ("free", "free_delta"):
                database.execute(f"ALTER TABLE answers DROP COLUMN {column}")
        database.execute(f"PRAGMA user_version = {version}")
    database.close()


@pytest.mark.parametrize(
    ("version", "second"), [(3, Charge(Fraction(7, 2), Fraction(1, 100))), (2, Charge(None))]
)
def test_an_old_store_keeps_its_ledger_and_its_outbox(
    version: int, second: Charge, tmp_path: Path
) -> None:
    old_store(tmp_path / "s.db", Place(), version)
    store = Store(tmp_path / "s.db")
    assert store.spent() == [Charge(Fraction(5)), second, Charge(None)]
    assert store.plan("", "cd" * 16, "", "") is None
    assert [(row.survey, row.body) for row in store.outbox()] == [
        ("cd" * 16, BODIES[0]),
        ("ef" * 16, BODIES[1]),
    ]
    store.close_answer(store.outbox()[0], "sent", "accepted")
    assert [row.survey for row in store.outbox()] == ["ef" * 16]
    store.close()


def test_an_old_answer_is_neither_repeated_nor_erased(tmp_path: Path) -> None:
    place = Place()
    old_store(tmp_path / "s.db", place)
    policy = Policy(allow_unpinned=True, cap="64")
    for server in (evil(), place, evil(), place):
        with pytest.raises(AlreadyAnswered):
            server.visit(tmp_path / "s.db", answer=True, policy=policy)
    assert place.posted == []  # nothing is drawn or sent again


def test_an_old_document_binds_the_chain_whose_publisher_signed_it(tmp_path: Path) -> None:
    place = Place(SECOND)
    old_store(tmp_path / "s.db", place, answered=False)
    evil().visit(tmp_path / "s.db", answer=True)
    place.show(FIRST)
    with pytest.raises(RollbackDetected):
        place.visit(tmp_path / "s.db")
    place.show(SECOND)
    assert place.visit(tmp_path / "s.db", answer=True) == "sent"
    assert evidence(tmp_path / "s.db") == []


def test_an_old_head_binds_the_log_whose_key_signed_it(tmp_path: Path) -> None:
    place = Place()
    logged: dict[str, Any] = {"policy": Policy(require_log=True)}
    place.show(SECOND)
    old_store(tmp_path / "s.db", place, answered=False)
    evil().visit(tmp_path / "s.db", **logged)
    place.log.digests = place.log.digests[1:]
    with pytest.raises(RollbackDetected):
        place.visit(tmp_path / "s.db", **logged)


def test_a_remembered_survey_needs_its_chain_and_then_no_network(tmp_path: Path) -> None:
    place = Place()
    place.visit(tmp_path / "s.db", pinned=True)
    place.down = ("/v1",)
    place.visit(tmp_path / "s.db", pinned=True)
    with pytest.raises(NetworkError):  # only the chain proves that keys of version 2 belong to it
        place.visit(tmp_path / "s.db", pinned=True, keys=place.version(2))
