# SPDX-License-Identifier: Apache-2.0
"""Parsers of bytes from the network, with honest bytes and the errors that each parser may raise."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import requests
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from frankly_analyst.analyst import _read
from frankly_analyst.errors import Refused, Unreachable
from frankly_protocol import canonical
from frankly_protocol.audit import parse_epsilon
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import KEYS_TYPE, SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, InvalidInput, LogError
from frankly_protocol.problems import Problem, problem_body
from frankly_protocol.report import Report
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust import (
    KeysDocument,
    KnownKeys,
    LogProof,
    SignedCheckpoint,
    accept_keys,
    prove_chain,
    read_chain,
    write_chain,
)
from frankly_protocol.trust.proof import require_watched
from frankly_protocol.trust.tokens import check_token, encode_token
from frankly_sdk import LinkError
from frankly_sdk._trusted import accept_survey
from frankly_sdk.delivery import _judge, _retry_after
from frankly_sdk.link import SurveyLink
from frankly_sdk.transport import Reply

from tests.frankly_protocol.every_kind import DATA, FORM, KINDS
from tests.frankly_protocol.samples import (
    NOW,
    PUBLISHER,
    keys_document,
    lip_block,
    sealed,
    sealed_keys,
    survey,
)
from tests.frankly_protocol.trust.samples import FakeLog, role
from tests.vectors import make

Check = Callable[[bytes], object]


@dataclass(frozen=True)
class Parser:
    """run : a function that must return or raise one of `errors` for any bytes."""

    run: Check
    seeds: tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = (DocumentRejected,)


def _vectors(name: str) -> Any:
    return json.loads((make.HERE / f"{name}.json").read_text("ascii"))


DOCUMENTS = [
    entry["payload"].encode()
    for entry in _vectors("documents")["documents"]
    if entry["name"] != "everything"
]
assert len(DOCUMENTS) == len(KINDS) * len(DATA) + 1  # 1 for the form
ROLE = keys_document().publisher
LINK = SurveyLink("https://collect.example", "ab" * 16, None)
LOG = FakeLog([f"sha256:{i:064x}" for i in range(5)])
PROOF = LOG.proof(LOG.digests[2])
KEYS = [sealed_keys(replace(keys_document(version), log=role())) for version in (1, 2, 3)]
RSA = encode_token(
    generate_private_key(65537, 2048)
    .public_key()
    .public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
)
REPORTS = [case["report"].encode() for case in _vectors("sampling")["reports"]]
RECEIPT = b'{"status":"accepted","id":"' + b"ab" * 16 + b'"}'


def _survey(data: bytes) -> object:
    document = SurveyDocument.parse(data)
    document.require_private()
    return document.report_level, document.report_length, document.payload()


def _signed(data: bytes) -> object:
    """Accept a payload signed with the publisher's key, as a device does."""
    return accept_survey(sealed(data), LINK, ROLE, None, NOW)


def _envelope(data: bytes) -> object:
    return Envelope.from_bytes(data, SURVEY_TYPE).verify((PUBLISHER.public,), 1)


def _report(data: bytes) -> object:
    report = Report.from_bytes(data)
    for mechanism, symbol in zip((*KINDS.values(), FORM), report.symbols, strict=False):
        mechanism.check_symbol(symbol)
    return report.to_bytes(0)


def _checkpoint(data: bytes) -> object:
    signed = SignedCheckpoint.from_bytes(data)
    require_watched(signed, role(), NOW)
    return signed.to_bytes()


def _chain(data: bytes) -> object:
    return prove_chain(read_chain(data), KnownKeys(KEYS[0], None), NOW)


def _text(parse: Callable[[str], object]) -> Check:
    """Decode arbitrary bytes to text for the parser, so that lone surrogates also occur."""
    return lambda data: parse(data.decode("utf-8", "surrogateescape"))


def _reply(data: bytes) -> object:
    """Read a receipt or a problem; the first byte selects the status."""
    status = (200, 201, 204, 302, 400, 404, 409, 410, 429, 500, 503)[data[0] % 11] if data else 200
    return _judge(Reply(status, "application/json", None, data[1:]), "ab" * 16, has_closed=False)


def _analyst(data: bytes) -> object:
    """Read a response of the analyst's API; the first byte selects the status."""
    answer = requests.Response()
    answer.status_code = (200, 401, 422, 503)[data[0] % 4] if data else 200
    answer.headers["Content-Type"] = "application/problem+json"
    answer.raw = BytesIO(data[1:])
    return _read(answer)


def _token(rule: TokenRule) -> Callable[[str], object]:
    return lambda text: check_token(rule, "ab" * 16, text)


def _problems() -> Iterable[bytes]:
    for problem in (Problem.CLOSED, Problem.TOO_EARLY, Problem.UNAVAILABLE):
        yield b"\x00" + json.dumps(problem_body(problem, problem.title, "y")).encode()


LOOSE = (*REPORTS, RECEIPT)
PAYLOADS = (survey(lip_block()).payload(), *DOCUMENTS[::5], DOCUMENTS[-1])
SURVEYS = tuple(map(sealed, PAYLOADS))
NOTES = (PROOF.signed.to_bytes(), LOG.head(0).to_bytes(), LOG.head(3, ["w1.example"]).to_bytes())
URLS = (
    b"https://a.example/s/" + b"ab" * 16,
    b"http://[::1]:80/s/" + b"0" * 32 + b"#sha256=" + b"cd" * 32,
)
NUMERALS = (b"0.5", b"1e999999", b"NaN", b"10")
GOOD_TOKEN = encode_token(bytes(32)).encode()
INVITE, ISSUED = TokenRule("invite"), TokenRule("rsa-pss", RSA)

PARSERS: dict[str, Parser] = {
    "canonical JSON": Parser(canonical.loads, PAYLOADS),
    "strict JSON": Parser(canonical.parse_json, LOOSE, (InvalidInput,)),
    "strict JSON, decimals": Parser(
        lambda data: canonical.parse_json(data, decimals=True),
        (b'{"a":[1.5,-2e-3,"x"]}', *LOOSE),
        (InvalidInput,),
    ),
    "envelope": Parser(_envelope, SURVEYS),
    "survey document": Parser(_survey, tuple(DOCUMENTS)),
    "signed survey document": Parser(_signed, PAYLOADS, (DocumentRejected, LinkError)),
    "keys document": Parser(
        KeysDocument.parse, tuple(Envelope.from_bytes(k, KEYS_TYPE).payload for k in KEYS)
    ),
    "keys envelope": Parser(lambda data: accept_keys(data, NOW), tuple(KEYS)),
    "chain of keys": Parser(_chain, (write_chain(KEYS), write_chain([]))),
    "report": Parser(_report, tuple(REPORTS), (InvalidInput,)),
    "checkpoint and cosignatures": Parser(_checkpoint, NOTES, (LogError,)),
    "log proof": Parser(
        lambda data: LogProof.from_bytes(data).require(LOG.digests[2], role(), NOW),
        (PROOF.to_bytes(),),
        (LogError,),
    ),
    "link": Parser(_text(SurveyLink.parse), URLS, (LinkError,)),
    "invite": Parser(_text(_token(INVITE)), (GOOD_TOKEN,), (InvalidInput,)),
    "issued token": Parser(
        _text(_token(ISSUED)), (GOOD_TOKEN, encode_token(bytes(320)).encode()), (InvalidInput,)
    ),
    "issuer's key": Parser(
        _text(lambda text: check_token(TokenRule("rsa-pss", text), "ab" * 16, "x")),
        (RSA.encode(),),
        (InvalidInput,),
    ),
    "receipt or problem": Parser(_reply, (b"\x01" + RECEIPT, *_problems()), ()),
    "Retry-After": Parser(
        _text(_retry_after), (b"60", b"1e9", b"Wed, 21 Oct 2026 07:28:00 GMT"), ()
    ),
    "analyst's answer or problem": Parser(
        _analyst, (b"\x00" + RECEIPT, *_problems()), (Refused, Unreachable)
    ),
    "level": Parser(_text(parse_epsilon), NUMERALS, (InvalidInput,)),
}
