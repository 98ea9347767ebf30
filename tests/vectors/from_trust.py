# SPDX-License-Identifier: Apache-2.0
"""Vectors of key chains, hash trees and log proofs."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.clock import format_time
from frankly_protocol.envelope import KEYS_TYPE, Envelope, SigningKey
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.trust import (
    KeysDocument,
    KnownKeys,
    LogProof,
    Role,
    Tree,
    prove_chain,
    require_consistency,
    require_inclusion,
)
from frankly_protocol.trust.merkle import leaf_hash

from tests.frankly_protocol.samples import NOW, PUBLISHER, ROOT, STRANGER, keys_document
from tests.frankly_protocol.trust import edwards
from tests.frankly_protocol.trust.samples import FakeLog, role

Case = dict[str, Any]
R2, R3 = SigningKey.from_raw(bytes([21]) * 32), SigningKey.from_raw(bytes([22]) * 32)
MANY = 17


def _keys(
    version: int, root: Sequence[SigningKey] = (ROOT,), threshold: int = 1, expires: int = 300
) -> KeysDocument:
    template = keys_document(version)
    role_ = Role(tuple(key.public for key in root), threshold)
    return replace(template, root=role_, expires=NOW + timedelta(days=expires))


def _sealed(document: KeysDocument, *signers: SigningKey) -> bytes:
    return Envelope.seal(KEYS_TYPE, document.payload(), signers or (ROOT,)).to_bytes()


def key_chains() -> Case:
    """Return known keys, a chain and a time, with the accepted version and the digest of version 1,
    or the refusal."""
    v1, v2, v3 = (_sealed(_keys(n)) for n in (1, 2, 3))
    both = _sealed(_keys(2, (R2, R3), 2), ROOT, R2, R3)
    forged = _sealed(_keys(2, (R2,)), ROOT, R2)
    altered = _sealed(replace(_keys(2), publisher=Role((STRANGER.public,), 1)))
    root, late = digest_of(_keys(1).payload()), timedelta(days=300)
    rows: list[tuple[str, str | None, bytes | None, str | None, Sequence[bytes], datetime]] = [
        ("first use", None, None, None, [v1], NOW),
        ("first use of several versions", None, None, None, [v1, v2, v3], NOW),
        ("nothing new", None, v2, root, [v1, v2], NOW),
        ("the next version", None, v1, root, [v1, v2], NOW),
        ("two steps", None, v1, root, [v1, v2, v3], NOW),
        ("a later version, shipped", None, v2, None, [v1, v2, v3], NOW),
        ("new roots, signed by old and new", None, v1, root, [v1, both], NOW),
        ("an expired version in between is a step", None, v1, root, [v1, _sealed(_keys(2, expires=-1)), v3], NOW),
        ("within ten minutes of the end", None, v1, root, [v1], NOW + late + timedelta(minutes=9)),
        ("not signed by its own root", "K2", None, None, [_sealed(_keys(1), STRANGER)], NOW),
        ("its own threshold not reached", "K2", v1, root, [v1, _sealed(_keys(2, (R2, R3), 2), ROOT, R2)], NOW),
        ("the old root did not sign", "K4", v1, root, [v1, _sealed(_keys(2, (R2,)), R2)], NOW),
        ("the old threshold not reached", "K4", both, root, [v1, both, _sealed(_keys(3, (R2, R3), 1), R2)], NOW),
        ("the same keys, the old threshold not reached", "K4", None, None, [
            _sealed(_keys(1, (R2, R3), 2), R2, R3), _sealed(_keys(2, (R2, R3), 1), R2)], NOW),
        ("a version left out", "K3", v1, root, [v1, v3], NOW),
        ("a version twice", "K3", v1, root, [v1, v2, v2], NOW),
        ("in another order", "K3", None, None, [v1, v3, v2], NOW),
        ("no first version", "K5", v2, None, [v2, v3], NOW),
        ("no version", "K5", None, None, [], NOW),
        ("1,024 versions are not too many, but these are none", "K1", None, None, [b""] * 1024, NOW),
        ("1,025 versions", "K5", None, None, [b""] * 1025, NOW),
        ("rollback", "K6", v2, root, [v1], NOW),
        ("rollback of what was shipped", "K6", v3, None, [v1, v2], NOW),
        ("the same version with other content", "K6", v2, root, [v1, altered], NOW),
        ("another version than the one shipped", "K6", v2, None, [v1, altered, v3], NOW),
        ("forked by a root key of former times", "K6", both, root, [v1, forged, _sealed(_keys(3, (R2,)), R2)], NOW),
        ("another chain", "K6", v1, root, [_sealed(_keys(1, (R2,)), R2)], NOW),
        ("rollback to what has expired", "K6", v2, root, [_sealed(_keys(1, expires=-1))], NOW),
        ("expired", "K7", v1, root, [v1, _sealed(_keys(2, expires=-1))], NOW),
        ("eleven minutes after the end", "K7", v1, root, [v1], NOW + late + timedelta(minutes=11)),
        ("not yet issued", "K7", None, None, [v1], NOW - timedelta(days=10, minutes=11)),
    ]  # fmt: skip
    exact, long_lived = (_lasting(400, seconds) for seconds in (0, 1))
    rows += [
        (name, "K1", None, None, [data], NOW)
        for name, data in [
            ("not canonical", _sealed_bytes(_keys(1).payload() + b" ")),
            ("a field too many", _sealed_bytes(_keys(1).payload()[:-1] + b',"x":1}')),
            ("a survey's type", v1.replace(b"frankly.keys", b"frankly.survey")),
            ("400 days and a second", long_lived),
            *_unsound_keys(),
        ]
    ]
    rows.append(("400 days", None, None, None, [exact], NOW))
    cases = []
    for name, step, known_envelope, known_root, chain, now in rows:
        case = {
            "name": name,
            "known": None if known_envelope is None else known_envelope.decode(),
            "known_root": known_root,
            "chain": [data.decode() for data in chain],
            "now": format_time(now),
        }
        remembered = None if known_envelope is None else KnownKeys(known_envelope, known_root)
        cases.append({**case, **_proven(chain, remembered, now, step)})
    return {"cases": cases}


def _lasting(days: int, seconds: int) -> bytes:
    """Return keys with `expires` this long after `issued`, edited as bytes because `KeysDocument`
    may refuse them."""
    template = _keys(1)
    until = format_time(template.issued + timedelta(days=days, seconds=seconds))
    return _sealed_bytes(
        template.payload().replace(format_time(template.expires).encode(), until.encode())
    )


def _unsound_keys() -> Iterator[tuple[str, bytes]]:
    """Return keys with every encoding of a point of small order, one not canonical, and one at each
    position of a key."""
    template = replace(_keys(1), log=role())
    places = {
        "root": _keys(1).root.keys[0].raw,
        "publisher": PUBLISHER.public.raw,
        "log": template.log.log.public.raw if template.log else b"",
        "witness": template.log.witnesses[1].public.raw if template.log else b"",
    }
    weak = edwards.small_order_encodings()
    for data in (*weak, edwards.not_canonical()[-1]):
        payload = template.payload().replace(
            places["publisher"].hex().encode(), data.hex().encode()
        )
        yield (
            f"a publisher key of small order or not canonical: {data.hex()}",
            _sealed_bytes(payload),
        )
    for place in ("root", "log", "witness"):
        payload = template.payload().replace(places[place].hex().encode(), weak[0].hex().encode())
        yield f"a key of small order: {place}", _sealed_bytes(payload)


def _sealed_bytes(payload: bytes) -> bytes:
    return Envelope.seal(KEYS_TYPE, payload, (ROOT,)).to_bytes()


def _proven(
    chain: Sequence[bytes], known: KnownKeys | None, now: datetime, step: str | None
) -> Case:
    try:
        proven = prove_chain(chain, known, now)
    except DocumentRejected as error:
        assert step is not None, error
        return {
            "version": None,
            "first_root": None,
            "step": step,
            "code": error.code,
            "field": error.field,
        }
    assert step is None
    return {
        "version": proven.keys.version,
        "first_root": proven.first_root,
        "step": None,
        "code": None,
        "field": None,
    }


def log_proofs() -> Case:
    """Return roots and proofs of small trees, and proofs of documents for the log of a keys document."""
    leaves = [leaf_hash(bytes([i])) for i in range(MANY)]
    tree = Tree(leaves)
    sizes = range(MANY + 1)
    inclusion = [
        {"index": i, "size": n, "path": _hex(tree.inclusion(i, n))}
        for n in (1, 2, 3, 7, 8, 13, 17)
        for i in range(n)
    ]
    consistency = [
        {"old": m, "new": n, "proof": _hex(tree.consistency(m, n))}
        for n in (3, 8, 13, 17)
        for m in range(n + 1)
    ]
    return {
        "entries": [bytes([i]).hex() for i in range(MANY)],
        "leaves": _hex(leaves),
        "roots": _hex([tree.root(n) for n in sizes]),
        "inclusion": inclusion,
        "inclusion_bad": _bad_inclusion(tree, leaves),
        "consistency": consistency,
        "consistency_bad": _bad_consistency(tree),
        "documents": _documents(),
    }


def _hex(hashes: Sequence[bytes]) -> list[str]:
    return [entry.hex() for entry in hashes]


def _bad_inclusion(tree: Tree, leaves: Sequence[bytes]) -> list[Case]:
    path, root = tree.inclusion(4, 13), tree.root(13)
    rows = {
        "another leaf": (leaves[5], 4, 13, path, root),
        "another index": (leaves[4], 5, 13, path, root),
        "another size": (leaves[4], 4, 8, path, root),
        "index beyond the size": (leaves[4], 13, 13, path, root),
        "another root": (leaves[4], 4, 13, path, tree.root(12)),
        "too short": (leaves[4], 4, 13, path[:-1], root),
        "too long": (leaves[4], 4, 13, [*path, root], root),
        "swapped": (leaves[4], 4, 13, [path[1], path[0], *path[2:]], root),
    }
    return [
        _bad(name, "leaf index size path root", row, require_inclusion)
        for name, row in rows.items()
    ]


def _bad_consistency(tree: Tree) -> list[Case]:
    proof, old, new = tree.consistency(6, 13), tree.root(6), tree.root(13)
    rows = {
        "another old root": (6, tree.root(5), 13, new, proof),
        "another new root": (6, old, 13, tree.root(12), proof),
        "other sizes": (5, old, 13, new, proof),
        "backwards": (13, new, 6, old, proof),
        "too short": (6, old, 13, new, proof[:-1]),
        "empty": (6, old, 13, new, []),
        "too long": (6, old, 13, new, [*proof, new]),
        "one size, two roots": (13, old, 13, new, []),
        "a proof where none is needed": (13, new, 13, new, proof),
    }
    return [
        _bad(name, "old old_root new new_root proof", row, require_consistency)
        for name, row in rows.items()
    ]


def _bad(name: str, fields: str, row: Sequence[Any], check: Any) -> Case:
    try:
        check(*row)
    except DocumentRejected as error:
        code = error.code
    else:
        raise AssertionError(name)
    values = [
        v.hex() if isinstance(v, bytes) else _hex(v) if isinstance(v, list) else v for v in row
    ]
    return {"name": name, **dict(zip(fields.split(), values, strict=True)), "code": code}


def _documents() -> Case:
    digests = ["sha256:" + hashlib.sha256(bytes([i])).hexdigest() for i in range(5)]
    log, digest_logged = FakeLog(digests), digests[2]
    complete = log.proof(digest_logged)
    one_witness = log.proof(digest_logged, ["w0.example"])
    forged = FakeLog(digests, key=PUBLISHER).proof(digest_logged)
    old = FakeLog(digests, signed_at=NOW - timedelta(days=31)).proof(digest_logged)
    soon = FakeLog(digests, signed_at=NOW + timedelta(minutes=11)).proof(digest_logged)
    other_log = FakeLog(digests, origin="other.example/log").proof(digest_logged)
    rows: list[tuple[str, str | None, str, bytes]] = [
        ("logged", None, digest_logged, complete.to_bytes()),
        (
            "two of three witnesses",
            None,
            digest_logged,
            log.proof(digest_logged, ["w0.example", "w2.example"]).to_bytes(),
        ),
        ("another log's name", "8.1", digest_logged, other_log.to_bytes()),
        ("another key under the log's name", "8.1", digest_logged, forged.to_bytes()),
        ("one witness", "8.2", digest_logged, one_witness.to_bytes()),
        ("no witness", "8.2", digest_logged, log.proof(digest_logged, []).to_bytes()),
        ("witnesses a month ago", "8.2", digest_logged, old.to_bytes()),
        ("witnesses in the future", "8.2", digest_logged, soon.to_bytes()),
        ("another document", "8.3", digests[3], complete.to_bytes()),
        ("another index", "8.3", digest_logged, replace(complete, index=3).to_bytes()),
        (
            "a path cut short",
            "8.3",
            digest_logged,
            replace(complete, path=complete.path[:-1]).to_bytes(),
        ),
        ("no proof", "8.1", digest_logged, b"not found"),
        (
            "another version of the format",
            "8.1",
            digest_logged,
            complete.to_bytes().replace(b"@v1", b"@v2"),
        ),
        (
            "an index with a zero before it",
            "8.1",
            digest_logged,
            complete.to_bytes().replace(b"index 2", b"index 02"),
        ),
    ]
    cases = []
    for name, step, digest, data in rows:
        cases.append(
            {"name": name, "digest": digest, "proof": data.decode(), **_logged(data, digest, step)}
        )
    return {"log": role().to_json(), "now": format_time(NOW), "cases": cases}


def _logged(data: bytes, digest: str, step: str | None) -> Case:
    try:
        LogProof.from_bytes(data).require(digest, role(), NOW)
    except DocumentRejected as error:
        assert step is not None, error
        return {"step": step, "code": error.code}
    assert step is None
    return {"step": None, "code": None}
