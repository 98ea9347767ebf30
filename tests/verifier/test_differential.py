# SPDX-License-Identifier: Apache-2.0
"""Differential test of the Python SDK and frankly-verify: both give the same verdict and code on
random and mutated documents.

The SDK accepts or refuses by steps 1 to 10. Step 10 is the app's policy, which an auditor does not
check, so a document that only the policy refuses counts as accepted.
"""

import base64
import copy
import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.verifier.driver import (
    KEYS_DOCUMENT,
    ROOT,
    Verdict,
    Verifier,
    canonical,
    python_verdict,
    signed,
)

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, -1, 3, 5, 48, 2**48, 2**53 - 1, "", "x", "X", "en", "ldp", "lip"),
    *("no", "yes", "a-b", "sha256:" + "0" * 64, "2026-06-01T00:00:00Z", [], {}, [1, 1], [1, 2]),
    *([2, 1], [[1]], "no_answer", "not_applicable", "\u200b", "dense", "rldp", "1.5", "10", "00"),
    *(
        "https://collect.example/x",
        "https://a.example",
        "http://127.0.0.1/",
        "1",
        "3",
        1.5,
        "\u202e",
    ),
    *(
        {"figure": "mean"},
        {"figure": "distribution"},
        {"figure": "contrast", "numbers": ["0", "1"]},
        {"counts": [0, 1], "source": "x"},
        {"counts": [0, 0], "source": "x"},
    ),
    *("mean", "contrast", ["-1", "0.5"], "-0"),
    *("invite", "rsa-pss", "sources", "came", "region", {"kind": "invite", "key": None}),
    *(32768, 65535, 65536, ["region"], ["region", "work"], ["marriage", "work"], ["others", "few"]),
    {"id": "arm", "arms": []},
]
NAMES = (
    "extra",
    "aa",
    "role",
    "score",
    "from",
    "box",
    "ask_if",
    "wanted",
    "figure",
    "numbers",
    "anchor",
    "counts",
    "source",
    "instructed",
    "level",
    "prior",
    "arms",
    "chance",
    "strata",
    "rules",
    "panel",
    "class",
)
LARGEST = 200_000


def _seeds(root: Path) -> list[Any]:
    vectors = root / "tests" / "vectors"
    documents = json.loads((vectors / "documents.json").read_text())["documents"]
    accepted = json.loads((vectors / "acceptance.json").read_text())["cases"]
    payloads = [case["payload"] for case in documents]
    payloads.append(json.loads((vectors / "answers.json").read_text())["payload"])
    planned = json.loads((vectors / "plans.json").read_text())["documents"]
    payloads += [case["payload"] for case in planned]
    sourced = json.loads((vectors / "sources.json").read_text())["documents"]
    payloads += [case["payload"] for case in sourced]
    payloads += [
        base64.b64decode(json.loads(case["envelope"])["payload"])
        for case in accepted
        if case["code"] is None
    ]
    return [json.loads(payload) for payload in payloads]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for name in value:
            yield from _paths(value[name], (*path, name))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _paths(item, (*path, i))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


def _number(rng: Random, value: int) -> int:
    return rng.choice([value - 1, value + 1, value + 2, rng.randrange(2 * abs(value) + 3)])


def _mutated(rng: Random, document: Any) -> Any:
    """Return a copy with one edit, because implementations may name any one of several faults."""
    document = copy.deepcopy(document)
    paths = list(_paths(document))
    path = rng.choice(paths)
    holder, key = _at(document, path[:-1]), path[-1]
    value = holder[key]
    kind = rng.random()
    if kind < 0.15:
        del holder[key]
    elif kind < 0.45 and type(value) is int:
        holder[key] = _number(rng, value)
    elif kind < 0.5 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(rng.choice(holder)))
    elif kind < 0.55 and isinstance(holder, list):
        rng.shuffle(holder)
    elif kind < 0.6 and isinstance(holder, dict):
        holder[rng.choice(NAMES)] = copy.deepcopy(rng.choice(VALUES))
    elif kind < 0.7:
        holder[key] = copy.deepcopy(_at(document, rng.choice(paths)))
    elif kind < 0.8 and isinstance(value, list) and len(value) > 1:
        value.pop(rng.randrange(len(value)))
    elif kind < 0.85 and isinstance(value, str):
        holder[key] = value + rng.choice(["a", "-", "Z", " ", "é", "\u200d"])
    else:
        holder[key] = copy.deepcopy(rng.choice(VALUES))
    return document


def _reweighted(rng: Random, document: Any) -> Any:
    """Return a copy with other mechanisms, counts and levels, which is well-formed but may not be private."""
    document = copy.deepcopy(document)
    for block in document["blocks"]:
        if block["kind"] == "dense":
            block["weights"] = [_row(rng, len(row), block["bits"]) for row in block["weights"]]
            block["ceiling"] = _ceiling(block["weights"])
        for claim in block["claims"]:
            for name in ("level", "low_level"):
                if claim.get(name) and claim["notion"] != "dpv":
                    value = Fraction(*claim[name]) * Fraction(rng.randrange(60, 200), 100)
                    value = value.limit_denominator(1 << 40)  # whole numbers are below 2^53
                    claim[name] = [value.numerator, value.denominator] if value >= 1 else [1, 1]
            for table in claim.get("prior", {}).get("tables", []):
                for row in table:
                    row[rng.randrange(len(row))] = rng.randrange(12)
    return document


def _row(rng: Random, columns: int, bits: int) -> list[int]:
    parts = [rng.randrange(1, 20) for _ in range(columns)]
    row = [(part << bits) // sum(parts) for part in parts]
    row[0] += (1 << bits) - sum(row)
    return row


def _ceiling(weights: list[list[int]]) -> list[int]:
    worst = max(Fraction(max(column), min(column)) for column in zip(*weights, strict=True))
    return [worst.numerator, worst.denominator]


def _cases(seeds: list[Any], count: int, seed: int) -> list[bytes]:
    rng = Random(seed)
    payloads: list[bytes] = []
    while len(payloads) < count:
        source = rng.choice(seeds)
        try:
            edit = rng.choice([_mutated, _mutated, _reweighted])
            payload = canonical(edit(rng, source))
        except (KeyError, IndexError, TypeError, ZeroDivisionError, ValueError):
            continue
        if len(payload) < LARGEST:
            payloads.append(payload)
    return payloads


BATCH, PARTS = 10_000, 20


# In parts, because a million documents take hours: each part has a limit of its own.
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_two_implementations_say_the_same(
    verifier: Verifier, root: Path, tmp_path: Path, part: int
) -> None:
    seeds = _seeds(root)
    said: Counter[str] = Counter()
    for seed in range(part, 100, PARTS):
        payloads = _cases(seeds, BATCH, seed)
        for payload, ours in zip(payloads, verifier.verdicts(payloads), strict=True):
            theirs = python_verdict(payload, tmp_path)
            if theirs.code.startswith("policy_"):
                theirs = Verdict("ok")
            said[theirs.code] += 1
            assert ours.code == theirs.code, f"{ours} {theirs} {payload.decode()}"
    wanted = ("ok", "document_schema", "document_weights", "document_privacy", "document_type")
    assert all(said[code] > 2 for code in wanted), said


LOG = {
    "name": "log.example/frankly",
    "scheme": "ed25519",
    "public": "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c",
    "witnesses": [
        {
            "name": "w0.example",
            "scheme": "ed25519",
            "public": "43a72e714401762df66b68c26dfbdf2682aaec9f2474eca4613e424a0fbafd3c",
        }
    ],
    "threshold": 1,
}


@pytest.mark.timeout(7200)
def test_they_say_the_same_about_keys(
    verifier: Verifier, root: Path, tmp_path: Path, full: bool
) -> None:
    """The test uses keys documents of a chain that is new to the device, and an accepted survey."""
    survey = canonical(_seeds(root)[0])
    payloads = _cases([KEYS_DOCUMENT, KEYS_DOCUMENT | {"log": LOG}], 20_000 if full else 200, 3)
    envelopes = [signed(payload, "keys", ROOT) for payload in payloads]
    for payload, envelope, ours in zip(
        payloads, envelopes, verifier.keys_verdicts(envelopes), strict=True
    ):
        theirs = python_verdict(survey, tmp_path, envelope)
        if theirs == Verdict("document_signature", "signatures") and ours.code == "ok":
            continue  # the keys are valid, but the survey's publisher is not among them
        assert ours.code == theirs.code, f"{ours} {theirs} {payload.decode()}"
