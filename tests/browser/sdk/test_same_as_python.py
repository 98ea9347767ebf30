# SPDX-License-Identifier: Apache-2.0
"""Verdicts, draws and texts of the browser SDK equal those of the Python SDK."""

import base64
import binascii
import copy
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.clock import format_time
from frankly_protocol.envelope import KEYS_TYPE, Envelope
from frankly_protocol.errors import FranklyError
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.trust import Role, accept_keys
from frankly_sdk._trusted import accept_survey
from frankly_sdk.link import SurveyLink, require_secure
from playwright.sync_api import Page

from tests.browser.sdk import reports
from tests.browser.sdk.wire import program
from tests.frankly_protocol import test_documents, test_every_kind, test_limits
from tests.frankly_protocol.audit.worlds import agreement as random_form
from tests.frankly_protocol.every_kind import below, documents, form_block
from tests.frankly_protocol.mechanisms import test_agreement
from tests.frankly_protocol.samples import NOW, PUBLISHER, ROOT, keys_document, put, sealed, survey
from tests.frankly_protocol.sourced import ACCEPTED, edited
from tests.frankly_protocol.trust import edwards
from tests.frankly_protocol.trust.samples import role
from tests.vectors.from_plans import documents as asking_documents

pytestmark = pytest.mark.usefixtures("shared_page")
STRATIFIED = reports.stratified()
FORMS = [
    test_agreement.FORM,
    test_agreement.EQUAL,
    *(
        random_form(Random(seed), sizes)
        for seed in range(6)
        for sizes in ((2,), (4,), (2, 3), (2, 2, 2), (3, 3), (2, 4, 4))
    ),
]
DOCUMENTS = {
    **documents(),
    **{f"stratified {name}": document for name, document in STRATIFIED.items()},
}
LINK = SurveyLink("https://collect.example", "ab" * 16, None)
VERDICTS = program("verdicts")


def verdict(envelope: bytes) -> list[str | None] | None:
    """Return the Python SDK's verdict: None if it accepts, otherwise the code and the field."""
    try:
        accept_survey(envelope, LINK, Role((PUBLISHER.public,), 1), None, NOW)
    except FranklyError as error:
        return [error.code, error.field]
    return None


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a JSON value."""
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def mutated(payload: bytes, random: Random) -> bytes:
    """Change one or two values or bytes of a document; most results stay canonical, so that they
    reach later checks."""
    value = json.loads(payload)
    for _ in range(random.choice([1, 1, 1, 2])):
        path = random.choice(places(value)[1:])
        parent = value
        for key in path[:-1]:
            parent = parent[key]
        mutate_at(parent, path[-1], random)
    if random.random() < 0.08:
        text = bytearray(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())
        at = random.randrange(len(text))
        text[at : at + random.choice([0, 1])] = random.choice(
            [b" ", b"0", b"\xff", b'"', b"\\u0061", b"1e2", b"-0", b"}"]
        )
        return bytes(text)
    try:
        return canonical.dumps(value)
    except FranklyError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def altered_bytes(envelope: bytes, random: Random) -> bytes:
    """Return the envelope with one or two bytes changed."""
    text = bytearray(envelope)
    for _ in range(2):
        at = random.randrange(len(text) if random.random() < 0.5 else 200)
        text[at : at + random.choice([0, 1])] = random.choice([b" ", b"0", b'"', b"=", b"}"])
    return bytes(text)


def mutate_at(parent: Any, key: Any, random: Random) -> None:
    old = parent[key]
    if isinstance(old, int) and not isinstance(old, bool) and random.random() < 0.8:
        parent[key] = random.choice(
            [old + 1, old - 1, 0, 1, 2, -1, 2 * old, 2**53 - 1, 2**53, old + (1 << 44), 2**48]
        )
    elif isinstance(old, list) and old and random.random() < 0.7:
        random.choice(
            [
                old.pop,
                old.reverse,
                lambda: old.append(copy.deepcopy(old[0])),
                lambda: old.insert(0, old[-1]),
            ]
        )()
    elif isinstance(old, dict) and old and random.random() < 0.5:
        if random.random() < 0.5:
            del old[random.choice(list(old))]
        else:
            old[random.choice(["extra", "kind", "é", "__proto__", "constructor", "0"])] = (
                random.choice([1, "x", None, []])
            )
    elif isinstance(old, str) and random.random() < 0.7:
        parent[key] = random.choice(
            ["", "x" * 4001, old.upper(), old + "a", old[:-1], "a\u202eb", "\u200d", "ü\u200dü", "\U0001f600" * 2001,
             "\x85", "2026-02-30T00:00:00Z", "toString", "lip", "ldp", "dense", "\ufeff", "é", "secret", old + " "]
        )  # fmt: skip
    else:
        parent[key] = random.choice(
            [None, True, False, 0, 1, "", "a", [], {}, [1, 2], 1.5, -1, {"secret": 1}]
        )


def judged_by_browser(page: Page, envelopes: list[bytes]) -> list[Any]:
    """Return the browser SDK's verdict on each envelope."""
    verdicts: list[Any] = []
    for start in range(0, len(envelopes), 500):
        part = [base64.b64encode(envelope).decode() for envelope in envelopes[start : start + 500]]
        request = {
            "envelopes": part,
            "key": PUBLISHER.public.raw.hex(),
            "now": NOW.timestamp() * 1000,
        }
        verdicts += page.evaluate(VERDICTS, request)
    return verdicts


def verdicts(page: Page, envelopes: list[bytes]) -> list[Any]:
    """Return the verdict on each envelope; assert that both SDKs reach the same one."""
    expected = [verdict(envelope) for envelope in envelopes]
    judged = zip(envelopes, expected, judged_by_browser(page, envelopes), strict=True)
    different = [(envelope, ours, theirs) for envelope, ours, theirs in judged if ours != theirs]
    assert different == [], (len(different), different[0])
    return expected


def test_mutated_documents_get_the_same_verdict_from_both_sdks(page: Page, full: bool) -> None:
    random = Random(9)
    originals = [document.payload() for document in DOCUMENTS.values()]
    envelopes = [sealed(payload) for payload in originals]
    envelopes += [
        sealed(mutated(random.choice(originals), random)) for _ in range(10_000 if full else 200)
    ]
    envelopes += [
        altered_bytes(random.choice(envelopes[: len(originals)]), random)
        for _ in range(1000 if full else 60)
    ]
    expected = verdicts(page, envelopes)
    assert expected[: len(originals)] == [None] * len(originals)
    assert sum(".prior.tables" in (one[1] or "") for one in expected if one) > 5
    assert {
        "document_privacy",
        "document_schema",
        "document_weights",
        "document_type",
        "document_canonical",
        None,
    } <= {one and one[0] for one in expected}


def test_mutated_forms_get_the_same_verdict_from_both_sdks(page: Page, full: bool) -> None:
    random = Random(12)
    originals = [survey(form_block(form)).payload() for form in FORMS]
    payloads = originals + [
        mutated(random.choice(originals), random) for _ in range(10_000 if full else 400)
    ]
    expected = verdicts(page, [sealed(payload) for payload in payloads])
    assert expected[: len(originals)] == [None] * len(originals)
    assert sum(".components" in (one[1] or "") for one in expected if one) > 20
    assert None in expected[len(originals) :]


def with_other_arms(payload: bytes, random: Random) -> bytes:
    """Return a document of which one or two arms ask other blocks or public questions, or another order."""
    body = json.loads(payload)
    for _ in range(random.choice([1, 1, 2])):
        arm, name = random.choice(body["arms"]["arms"]), random.choice(["blocks", "strata"])
        known = [one["id"] for one in body[name]]
        arm[name] = random.choice(
            [
                random.sample(known, random.randint(0, len(known))),
                random.choices([*known, "region"], k=random.randint(0, 3)),
            ]
        )
    if random.random() < 0.3:
        random.choice([body["blocks"], body["strata"], body["arms"]["arms"]]).reverse()
    return canonical.dumps(body)


def test_mutated_arms_get_the_same_verdict_from_both_sdks(page: Page, full: bool) -> None:
    random = Random(13)
    originals = [one.payload() for one in asking_documents().values() if one.arms]
    payloads = originals + [
        random.choice([mutated, with_other_arms])(random.choice(originals), random)
        for _ in range(10_000 if full else 400)
    ]
    expected = verdicts(page, [sealed(payload) for payload in payloads])
    assert expected[: len(originals)] == [None] * len(originals)
    fields = [one and one[1] for one in expected[len(originals) :]]
    assert fields.count(None) > 20
    assert {"arms.arms", "arms.arms[0].blocks", "arms.arms[1].strata", "blocks", "stress"} <= set(
        fields
    )


def with_other_sources(payload: bytes, random: Random) -> bytes:
    """Return a document with other rules, another question of the sources, or other choices of one."""
    body = json.loads(payload)
    rules, asked = body["token"]["rules"], random.choice(body["strata"])
    name = random.choice(["class", "list", "panel", "north", "no", "class,list", "__proto__", ""])
    choice = random.choice(asked["choices"])
    random.choice(
        [
            lambda: rules.pop(random.choice(list(rules))),
            lambda: rules.update({name: random.choice(list(rules.values()))}),
            lambda: rules.update({name: rules.pop(random.choice(list(rules)))}),
            lambda: body["token"].update(question=asked["id"]),
            lambda: asked["choices"].remove(choice),
            lambda: choice.update(id=name),
            lambda: asked.update(id=name),
            body["strata"].reverse,
        ]
    )()
    return canonical.dumps(body)


def test_mutated_sources_get_the_same_verdict_from_both_sdks(page: Page, full: bool) -> None:
    random = Random(14)
    originals = [canonical.dumps(edited(edit)) for edit in ACCEPTED.values()]
    payloads = originals + [
        random.choice([mutated, with_other_sources, with_other_sources])(
            random.choice(originals), random
        )
        for _ in range(10_000 if full else 400)
    ]
    expected = verdicts(page, [sealed(payload) for payload in payloads])
    assert expected[: len(originals)] == [None] * len(originals)
    fields = [one and one[1] for one in expected[len(originals) :]]
    assert fields.count(None) > 20
    assert {"token.question", "token.rules"} <= set(fields)
    assert any((field or "").startswith("token.rules.") for field in fields)


ONES, ZEROS = [1] * 4, [0] * 4
# A secret that occurs in no stratum, and a stratum in which the sensitive secret is certain.
WITHOUT_COUNTS = [
    ("dense lip", [[ONES, ZEROS, ONES]] * 3, ".tables[0][1]"),
    ("dense dpv", [[ONES] * 3, [ONES] * 3, [ZEROS, ONES, ZEROS]], ""),
]


def test_every_fault_and_limit_of_the_python_tests_gets_the_same_verdict(page: Page) -> None:
    """These faults are named, because random changes rarely hit the one value on which two parsers differ."""
    envelopes = [
        sealed(test_documents.edited(edit))
        for edit, reason, _ in test_documents.CASES
        if reason != "canonical"  # except numbers that canonical JSON cannot represent
    ]
    for name, path, value, _, _ in test_every_kind.BAD:
        body = json.loads(json.dumps(test_every_kind.ONE[name]))
        put(path, value)(body)
        envelopes.append(sealed(canonical.dumps(body)))
    for parameters, _ in test_agreement.BAD[2:]:  # the first two are no parameters of a form
        body = json.loads(survey(form_block(test_agreement.FORM)).payload())
        body["blocks"][0] |= parameters
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        envelopes.append(sealed(text.encode()))
    for name, tables, _ in WITHOUT_COUNTS:
        body = json.loads(STRATIFIED[name].payload())
        put("blocks.0.claims.0.prior.tables", tables)(body)
        envelopes.append(sealed(canonical.dumps(body)))
    faults = len(envelopes)
    for edit, limit, _ in test_limits.LIMITS.values():
        for n in (limit, limit + 1):
            body = json.loads(test_limits.PAYLOAD)
            edit(body, n)
            envelopes.append(sealed(canonical.dumps(body)))
    expected = verdicts(page, envelopes)
    assert None not in expected[:faults]
    assert expected[faults - 2 : faults] == [
        ["document_privacy", f"blocks[0].claims[0].prior{field}"] for _, _, field in WITHOUT_COUNTS
    ]
    assert expected[faults:].count(None) >= len(test_limits.LIMITS) - 1


def test_a_level_below_the_worst_stratum_is_refused_by_both_sdks(page: Page) -> None:
    """The document promises a level slightly below the one that the worst stratum needs."""
    envelopes = []
    for document in STRATIFIED.values():
        (block,) = document.blocks
        (promise,) = block.promises
        for less in below(promise):
            lower = replace(document, blocks=(replace(block, promises=(less,)),))
            envelopes.append(sealed(lower.payload()))
    assert {one and one[0] for one in verdicts(page, envelopes)} == {"document_privacy"}


KEYS_VERDICTS = program("keys_verdicts")
WEAK = [*edwards.small_order_encodings(), *edwards.not_canonical()]


def keys_verdict(envelope: bytes) -> list[str | None] | None:
    """Return the Python SDK's verdict on keys: None if it accepts them, otherwise the code and the field."""
    try:
        accept_keys(envelope, NOW)
    except FranklyError as error:
        return [error.code, error.field]
    return None


def mutated_keys(payload: bytes, random: Random) -> bytes:
    """Change a keys document as `mutated` does, or change only the bytes of a key or one time."""
    if random.random() < 0.6:
        return mutated(payload, random)
    original = random.choice(re.findall(rb'"([0-9a-f]{64}|20[^"]*Z)"', payload))
    if len(original) < 64:
        day = NOW + timedelta(
            days=random.choice([-401, -400, -100, 100, 389, 390, 391, 400]),
            seconds=random.choice([0, 1]),
        )
        return payload.replace(original, format_time(day).encode())
    replacement = random.choice([*WEAK, bytes.fromhex(original.decode())[::-1]])
    return payload.replace(original, replacement.hex().encode())


def test_mutated_keys_get_the_same_verdict_from_both_sdks(page: Page, full: bool) -> None:
    random = Random(10)
    originals = [keys_document().payload(), replace(keys_document(), log=role()).payload()]
    payloads = originals + [
        mutated_keys(random.choice(originals), random) for _ in range(5000 if full else 300)
    ]
    envelopes = [Envelope.seal(KEYS_TYPE, payload, (ROOT,)).to_bytes() for payload in payloads]
    expected = [keys_verdict(envelope) for envelope in envelopes]
    assert expected[:2] == [None, None]
    assert {python_verdict and python_verdict[1] for python_verdict in expected} >= {
        None, "expires", "root.keys[0].public", "publisher.keys[0].public", "log.public", "log.witnesses[0].public",
    }  # fmt: skip
    request = {
        "envelopes": [base64.b64encode(envelope).decode() for envelope in envelopes],
        "now": NOW.timestamp() * 1000,
    }
    verdicts = list(zip(payloads, expected, page.evaluate(KEYS_VERDICTS, request), strict=True))
    assert [verdict for verdict in verdicts if verdict[1] != verdict[2]] == []


def test_both_sdks_judge_base64_alike(page: Page) -> None:
    texts = ["QUJD" * 3] + ["A" * n + "=" * p for n in range(9) for p in range(6)]
    texts += ["QQ=Q", "QQ-_", "QUJD ", " QUJD", "QU\nJD", "QUJDé", "=QQ=", "QR==", "QUJ="]
    expected: list[int | None] = []
    for text in texts:
        try:
            expected.append(len(base64.b64decode(text.encode("ascii"), validate=True)))
        except (UnicodeEncodeError, binascii.Error):
            expected.append(None)
    lengths = page.evaluate(
        """async (texts) => {
          const {unbase64} = await import("/sdk/canonical.js");
          return texts.map((text) => unbase64(text)?.length ?? null);
        }""",
        texts,
    )
    assert lengths == expected
    assert {None, 1, 2, 3} <= set(expected)


ADDRESSES = [
    "", "a", "a:b", "secret", "//collect.example/r", "https:collect.example", "https:/collect.example", "https:///collect.example",
    "https:\\\\collect.example", "https://", "https://?", "https://#", "https://collect.example", "HTTPS://COLLECT.EXAMPLE/R",
    "https://collect.example:443/r", "https://collect.example:/r", "https://collect.example:port/r", "https://collect.example:99999/r",
    "https://collect .example/r", "https://col<lect.example/r", "https://col|lect.example/r", "https://col%20lect.example/r",
    "https://col^lect.example/r", "https://col}lect.example/r", "https://-collect.example/r", "https://collect_.example/r",
    "https://collect.example/a b", "https://collect.example/a?b#c", "https://[::1]/r", "https://[::1/r", "https://1.2.3.4/r",
    "https://1.2.3/r", "https://me@collect.example/r", "https://me:word@collect.example", "https://@collect.example/r",
    "ftp://me@collect.example/r", "httpsa//collect.example", "ht}tps://collect.example", "https ://collect.example",
    " https://collect.example/r", "http://collect.example/r", "http://localhost/r", "http://localhost.example/r",
    "http://127.0.0.1:8080/r", "http://127.9.9.9/r", "http://127.0.0.1.example/r", "http://[::1]:80/r", "http://[::2]/r",
    "http://10.0.0.1/r", "ws://localhost/r", "file:///r", "javascript:1", "data:,x",
]  # fmt: skip


def test_both_sdks_judge_addresses_alike(page: Page) -> None:
    expected: list[str | None] = []
    for address in ADDRESSES:
        try:
            require_secure(address)
            expected.append(None)
        except FranklyError as error:
            expected.append(error.code)
    by_browser = page.evaluate(
        """async (addresses) => {
          const {requireSecure} = await import("/sdk/link.js");
          return addresses.map((address) => {
            try { requireSecure(address); return null; } catch (error) { return error.code; }
          });
        }""",
        ADDRESSES,
    )
    assert set(expected) == {None, "link", "insecure_transport"}
    verdicts = zip(ADDRESSES, expected, by_browser, strict=True)
    different = [verdict for verdict in verdicts if verdict[1] != verdict[2]]
    assert different == [], different


DRAWS = program("draws")


class Short(Exception):
    """Raised when the tape has no more bits."""


def drawn(mechanism: AnyMechanism, tape: int) -> str:
    """Return the SHA-256 of the symbols drawn for all answers and all tapes of `tape` bits."""
    symbols: list[Any] = []
    truths: Iterable[Any] = range(mechanism.answers)
    if isinstance(mechanism, AgreementMechanism):
        truths = product(*map(range, mechanism.choices))
    for truth, start in product(truths, range(1 << tape)):
        state = [start, tape]

        def read(size: int, state: list[int] = state) -> int:
            if size > state[1]:
                raise Short
            value = state[0] & ((1 << size) - 1)
            state[0], state[1] = state[0] >> size, state[1] - size
            return value

        try:
            symbols.append(mechanism.symbol_json(mechanism.sample(truth, read)))  # type: ignore[arg-type]
        except Short:
            symbols.append(None)
    return hashlib.sha256(json.dumps(symbols, separators=(",", ":")).encode()).hexdigest()


def table(random: Random, bits: int, answers: int, reports: int) -> DenseMechanism:
    """Return a random table with some zero weights."""
    rows = []
    for _ in range(answers):
        cuts = sorted(random.choice([0, random.randrange(1 << bits)]) for _ in range(reports - 1))
        rows.append(tuple(b - a for a, b in zip([0, *cuts], [*cuts, 1 << bits], strict=True)))
    if any(not any(column) for column in zip(*rows, strict=True)):
        return table(random, bits, answers, reports)
    return DenseMechanism(bits, tuple(rows))


def test_every_draw_of_every_table_gives_the_symbol_of_python(page: Page, full: bool) -> None:
    random = Random(16)
    for bits in [16] * 200 if full else [16, 8, 10]:
        mechanism = table(random, bits, random.randint(2, 5), random.randint(2, 6))
        request = {"kind": "dense", "params": mechanism.params_json(), "tape": bits}
        assert page.evaluate(DRAWS, request) == drawn(mechanism, bits), mechanism


SMALL: list[tuple[AnyMechanism, int]] = [
    (UnaryMechanism(4, 3, 9, 4), 12),
    (SubsetMechanism(4, 5, 2, 11), 11),
    (SubsetMechanism(4, 4, 3, 2), 12),
    (ProductMechanism((DenseMechanism(4, ((9, 7), (3, 13))), DenseMechanism(4, ((5, 11), (16, 0), (8, 8))))), 8),
    (random_form(Random(4), (2, 3)), 10),
    (random_form(Random(7), (2, 2, 2)), 10),
    (test_agreement.FORM, 11),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "tape"), SMALL, ids=lambda v: v.kind if not isinstance(v, int) else str(v)
)
def test_every_draw_of_every_other_kind_gives_the_symbol_of_python(
    page: Page, mechanism: AnyMechanism, tape: int
) -> None:
    request = {"kind": mechanism.kind, "params": mechanism.params_json(), "tape": tape}
    assert page.evaluate(DRAWS, request) == drawn(mechanism, tape)


def test_both_sdks_bound_and_show_levels_alike(page: Page) -> None:
    from frankly_protocol.audit import exp_lower, ln_up

    random = Random(5)
    levels = [Fraction(random.randint(1, 64_000), 1000) for _ in range(40)]
    ratios = [Fraction(random.randrange(1, 2**53), random.randrange(1, 2**53)) for _ in range(60)]
    ratios = [max(r, 1 / r) for r in ratios] + [
        Fraction(1),
        exp_lower(Fraction(1, 2)),
        exp_lower(Fraction(1, 2)) + Fraction(1, 2**60),
    ]
    by_browser = page.evaluate(
        """async ({levels, ratios}) => {
          const [r, shown] = await Promise.all([import("/sdk/rational.js"), import("/sdk/shown.js")]);
          const pair = ([n, d]) => r.rational(BigInt(n), BigInt(d));
          const bounds = levels.map((one) => r.expLower(pair(one)).map(String));
          return {levels: bounds, ratios: ratios.map((one) => shown.lnUp(pair(one)))};
        }""",
        {
            "levels": [_pair(level) for level in levels],
            "ratios": [_pair(ratio) for ratio in ratios],
        },
    )
    assert by_browser["levels"] == [_pair(exp_lower(level)) for level in levels]
    assert by_browser["ratios"] == [ln_up(ratio) for ratio in ratios]


def _pair(ratio: Fraction) -> list[str]:
    return [str(ratio.numerator), str(ratio.denominator)]
