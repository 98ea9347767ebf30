# SPDX-License-Identifier: Apache-2.0
"""Second verifier of documents, key chains and log proofs, written only from docs/protocol.md.

Ed25519 and SHA-256 come from libraries, the schema from docs/survey.schema.json, and the privacy
definitions from tests/frankly_protocol/audit/definitions.py. This module does not use the SDK's
acceptance code.
"""

import base64
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import comb, prod
from typing import Any
from urllib.parse import urlsplit

import jsonschema
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_protocol.audit.definitions import needed, table
from tests.frankly_protocol.trust import edwards
from tests.vectors.second_answers import require_ways
from tests.vectors.second_arms import names_beside, require_arms, views
from tests.vectors.second_bytes import (
    Refused,
    digest,
    leaf,
    open_envelope,
    read,
    require_signed,
    root,
)
from tests.vectors.second_bytes import path as inclusion_path
from tests.vectors.second_numbers import cover_sets

KEYS_TYPE = "application/vnd.frankly.keys+json"
SKEW = timedelta(minutes=10)
KINDS = ("dense", "unary", "subset", "product", "agreement")
NOTIONS = ("ldp", "dp", "secret-ldp", "lip", "alip", "srlip", "rldp", "dpv", "metric-ldp")


def when(text: str) -> datetime:
    """Parse a time in a document."""
    return datetime.fromisoformat(text)


def accepted(case: dict[str, Any], context: dict[str, Any], schema: dict[str, Any]) -> None:
    """Accept a case, or raise Refused with the number of the first step that fails."""
    publisher = context["publisher"]
    data = b" " * 6 * 2**20 if case["envelope"] is None else case["envelope"].encode()
    payload, signatures = open_envelope(data, case["payload_type"])
    keys = [bytes.fromhex(key) for key in publisher["public_keys"]]
    require_signed(payload, case["payload_type"], signatures, keys, publisher["threshold"])
    try:
        document = read(payload)
    except Refused:
        raise Refused("4") from None
    require_known(document)
    require_form(document, schema)
    assert document["survey"] == context["survey"]
    if urlsplit(document["collect_url"]).hostname != urlsplit(context["origin"]).hostname:
        raise Refused("4")
    if not when(document["opens"]) - SKEW <= when(case["now"]) <= when(document["closes"]) + SKEW:
        raise Refused("6")
    before = case["remembered"]
    already_seen = before and (document["version"], digest(payload)) == (
        before["version"],
        before["digest"],
    )
    if before and not already_seen and document["version"] <= before["version"]:
        raise Refused("7")
    if case["pin"] not in (None, digest(payload)):
        raise Refused("8")
    require_private(document)


def require_known(document: dict[str, Any]) -> None:
    """Check step 5."""
    blocks = document["blocks"]
    kinds = [block["kind"] for block in blocks]
    notions = [claim["notion"] for block in blocks for claim in block["claims"]]
    is_known = document["type"] == "frankly.survey/2" and all(
        rule["kind"] in ("invite", "rsa-pss")
        for rule in _rules(document["token"])
        if isinstance(rule, dict) and rule.keys() == {"kind", "key"}
    )
    if not is_known or set(kinds) - set(KINDS) or set(notions) - set(NOTIONS):
        raise Refused("5")


def _rules(token: Any) -> list[Any]:
    """Return the rule of each source; without sources, the rule itself (spec 3.11)."""
    if not isinstance(token, dict) or token.get("kind") != "sources":
        return [token] if token else []
    return list(token["rules"].values()) if isinstance(token.get("rules"), dict) else []


def require_form(document: dict[str, Any], schema: dict[str, Any]) -> None:
    """Check step 4: the published schema, and the rules that a schema cannot express."""
    if not jsonschema.Draft202012Validator(schema).is_valid(document):
        raise Refused("4")
    times = [when(document[name]) for name in ("issued", "opens", "closes", "expires")]
    questions = [question for block in document["blocks"] for question in block["questions"]]
    item, strata = document.get("instructed"), document["strata"]
    asked = [*questions, *strata, *([] if item is None else [item])]
    block_ids = [block["id"] for block in document["blocks"]]
    choices = [question["choices"] for question in asked]
    labels = [entry["label"] for listed in choices for entry in listed]
    boxes = [question["box"] for question in questions if "box" in question]
    labels += [box[name] for box in boxes for name in ("text", "label")]
    if (
        any(a > b for a, b in pairwise(times))
        or times[1] == times[2]
        or times[3] - times[0] > timedelta(days=400)
        or document["release_step"] > document["min_reports"]
        or (document["prev"] is None) != (document["version"] == 1)
        or len(set(document["languages"])) < len(document["languages"])
        or any(
            set(translations) != set(document["languages"])
            for translations in [document["title"], *labels]
        )
        or any(len({c["id"] for c in listed}) < len(listed) for listed in choices)
        or any(
            (rule["kind"] == "invite") != (rule["key"] is None)
            for rule in _rules(document["token"])
        )
        or re.search("[\u0000-\u001f\u202a-\u202e\u2066-\u2069]", document["title"]["en"])
        or len(set(block_ids)) < len(block_ids)
        or (item is not None and item["answer"] not in {c["id"] for c in item["choices"]})
        or any(not _is_table(block) for block in document["blocks"] if block["kind"] == "dense")
        or any(not _is_form(block) for block in document["blocks"] if block["kind"] == "agreement")
    ):
        raise Refused("4")
    require_arms(document)
    for view in views(document).values():
        _require_view(view)


def _require_view(view: dict[str, Any]) -> None:
    """Check what a person is asked: the whole document or, if it has arms, the view of one."""
    questions = [question for block in view["blocks"] for question in block["questions"]]
    ids = [question["id"] for question in (*questions, *view["strata"])] + names_beside(view)
    if (
        len(set(ids)) < len(ids)
        or (
            "instructed" in view
            and (
                any(claim.keys() & {"prior", "secret"} for claim in _claims(view))
                or any("anchor" in question for question in questions)
            )
        )
        or any(not _fits(prior, view["strata"]) for prior in _priors(view))
        or not _names_sources(view)
    ):
        raise Refused("4")
    require_ways(questions)


def _names_sources(view: dict[str, Any]) -> bool:
    """Return True if the sources, if there are any, are the choices of a public question."""
    token = view["token"]
    if token is None or token["kind"] != "sources":
        return True
    asked = [question for question in view["strata"] if question["id"] == token["question"]]
    return [{choice["id"] for choice in question["choices"]} for question in asked] == [
        set(token["rules"])
    ]


def _priors(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [claim["prior"] for claim in _claims(document) if "prior" in claim]


def _claims(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [claim for block in document["blocks"] for claim in block["claims"]]


def _fits(prior: dict[str, Any], strata: list[dict[str, Any]]) -> bool:
    """Return True if there is one table, or one per stratum, all of the same shape, no stratum is
    empty, and the counts of all strata sum to less than 2^53."""
    tables, names = prior["tables"], len(prior["secrets"])
    shapes = {tuple(map(len, rows)) for rows in tables}
    (shape, *other_shapes) = shapes
    return (
        not other_shapes
        and len(set(shape)) == 1
        and (len(shape) == names or shape == (names,))
        and (len(tables) == 1 or len(tables) == prod(len(q["choices"]) for q in strata))
        and (len(tables) == 1 or all(any(map(any, rows)) for rows in tables))
        and all(
            sum(counts) < 2**53
            for rows in zip(*tables, strict=True)
            for counts in zip(*rows, strict=True)
        )
    )


def _is_table(block: dict[str, Any]) -> bool:
    weights, answers = block["weights"], prod(len(q["choices"]) for q in block["questions"])
    return (
        len(weights) == answers == len(block["design_prior"])
        and all(block["design_prior"])
        and len({len(row) for row in weights}) == 1
        and all(sum(row) == 2 ** block["bits"] and min(row) >= 0 for row in weights)
        and all(map(any, zip(*weights, strict=True)))
    )


def _is_form(block: dict[str, Any]) -> bool:
    """Return True if a form follows the rules of spec 1.10 that the schema cannot express."""
    choices, parts, components = block["choices"], block["parts"], block["components"]
    sizes = [prod(choices[q] for q in part if q < len(choices)) for part in parts]
    used = {
        part for component in components for pool in component["pools"] for part in pool["parts"]
    }
    return (
        choices == [len(q["choices"]) for q in block["questions"]]
        and sum(choices) == len(block["design_prior"]) <= 2000
        and all(block["design_prior"])
        and block["agree"] >= block["disagree"]
        and all(part == sorted(set(part)) and max(part) < len(choices) for part in parts)
        and max(sizes) <= 256
        and {q for part in parts for q in part} == set(range(len(choices)))
        and used == set(range(len(parts)))
        and sum(component["chance"] for component in components) == 2 ** block["bits"]
        and all(_is_component(component, parts, sizes) for component in components)
        and sum(_cells(component, block, sizes) for component in components) <= 2**20
    )


def _is_component(component: dict[str, Any], parts: list[list[int]], sizes: list[int]) -> bool:
    named: list[int] = []
    for pool in component["pools"]:
        if pool["parts"] != sorted(set(pool["parts"])) or max(pool["parts"]) >= len(parts):
            return False
        answers = {sizes[part] for part in pool["parts"]}
        if len(answers) > 1 or pool["pick"] > len(pool["parts"]):
            return False
        if not _is_cover(pool["cover"], answers.pop()):
            return False
        named += [q for part in pool["parts"] for q in parts[part]]
    most = sum(pool["pick"] * pool["score"] for pool in component["pools"])
    return len(set(named)) == len(named) and 1 <= component["threshold"] <= most


def _is_cover(cover: Any, answers: int) -> bool:
    if isinstance(cover, int):
        return 1 <= cover < answers and comb(answers, cover) <= 4096
    digits = {len(text) for text, _ in cover}
    sets = cover_sets(cover, 4 * max(digits))
    covered = {sum(weight for held, weight in sets if x in held) for x in range(answers)}
    return (
        digits == {(answers + 3) // 4}
        and len({text for text, _ in cover}) == len(cover)
        and all(held < set(range(answers)) and held for held, _ in sets)
        and sum(weight for _, weight in sets) < 2**53
        and len(cover) * answers <= 2**18
        and len(covered) == 1
    )


def _cells(component: dict[str, Any], block: dict[str, Any], sizes: list[int]) -> int:
    cells = 0
    for pool in component["pools"]:
        cover, answers = pool["cover"], sizes[pool["parts"][0]]
        joint = [block["parts"][part] for part in pool["parts"] if len(block["parts"][part]) > 1]
        sets = comb(answers, cover) if isinstance(cover, int) else len(cover)
        cells += sets * (answers + sum(block["choices"][q] for part in joint for q in part))
        cells += 8 * pool["pick"] * (component["threshold"] + 1)
    return cells


def require_private(document: dict[str, Any]) -> None:
    """Check step 9: every claim by its definition, and the ceiling as the largest ratio of any column."""
    for block in document["blocks"]:
        mechanism = mechanism_of(block)
        columns = table(mechanism).values()
        ceiling = None if any(0 in q for q in columns) else max(max(q) / min(q) for q in columns)
        if (None if block["ceiling"] is None else Fraction(*block["ceiling"])) != ceiling:
            raise Refused("9")
        if block["kind"] == "agreement" and any(c["notion"] != "ldp" for c in block["claims"]):
            raise Refused("9")
        for tables in (c["prior"]["tables"] for c in block["claims"] if "prior" in c):
            if not all(any(map(any, rows)) for rows in zip(*tables, strict=True)):
                raise Refused("9")
        for claim in (claim for claim_json in block["claims"] for claim in claims_of(claim_json)):
            for name, ratio in needed(mechanism, claim).items():
                level = getattr(claim, name)
                if level is not None and (ratio is None or ratio > Fraction(*level)):
                    raise Refused("9")


def mechanism_of(block: dict[str, Any]) -> AnyMechanism:
    """Return the mechanism of a block, used only as a record of its parameters."""
    if block["kind"] == "agreement":
        return AgreementMechanism.from_params(
            {name: block[name] for name in AgreementMechanism.PARAMS}
        )
    if block["kind"] == "dense":
        return _dense(block["bits"], block["weights"])
    if block["kind"] == "product":
        return ProductMechanism(
            tuple(_dense(block["bits"], weights) for weights in block["factors"])
        )
    if block["kind"] == "unary":
        return UnaryMechanism(block["bits"], block["answers"], block["keep"], block["flip"])
    return SubsetMechanism(block["bits"], block["answers"], block["size"], block["inside"])


def _dense(bits: int, weights: list[list[int]]) -> DenseMechanism:
    return DenseMechanism(bits, tuple(map(tuple, weights)))


def claims_of(claim_json: dict[str, Any]) -> Iterator[Claim]:
    """Yield the claim; with several strata, one claim per stratum where at least two secrets occur."""
    tables: list[Any] = claim_json["prior"]["tables"] if "prior" in claim_json else [None]
    for rows in tables:
        if len(tables) == 1:
            yield claim_of(claim_json, rows)
        elif (
            len(
                present := [
                    name
                    for name, row in zip(claim_json["prior"]["secrets"], rows, strict=True)
                    if any(row)
                ]
            )
            > 1
        ):
            prior = {"secrets": present, "tables": [[row for row in rows if any(row)]]}
            yield claim_of({**claim_json, "prior": prior}, prior["tables"][0])


def claim_of(claim_json: dict[str, Any], rows: Any) -> Claim:
    """Return a claim, used only as a record of its fields."""
    arguments: dict[str, Any] = {
        name: tuple(claim_json[name])
        for name in ("level", "low_level", "delta")
        if claim_json.get(name)
    }
    if "prior" in claim_json:
        arguments["joint"] = tuple(map(tuple, rows))
    if "lower_bounds" in claim_json:
        arguments["lower_bounds"] = tuple(
            tuple(map(tuple, row)) for row in claim_json["lower_bounds"]
        )
        arguments["diagonal"] = claim_json["diagonal"]
    if "levels" in claim_json:
        arguments["levels"] = tuple(
            tuple(ratio and tuple(ratio) for ratio in row) for row in claim_json["levels"]
        )
    if "attributes" in claim_json:
        arguments["attributes"] = tuple(claim_json["attributes"])
    if "sensitive" in claim_json:
        arguments["sensitive"] = claim_json["prior"]["secrets"].index(claim_json["sensitive"])
    return Claim(claim_json["notion"], **{"level": None, **arguments})


def chained(case: dict[str, Any]) -> tuple[int, str]:
    """Return the usable version of the keys and the digest of version 1, or raise Refused with a
    step from K1 to K7."""
    if not 0 < len(case["chain"]) < 1025:
        raise Refused("K5")
    steps = [_keys(text) for text in case["chain"]]
    numbers = [document["version"] for document, _, _ in steps]
    if numbers[0] != 1:
        raise Refused("K5")
    for i in range(1, len(steps)):
        if numbers[i] != i + 1:
            raise Refused("K3")
        _require_root(steps[i], steps[i - 1][0], "K4")
    first_root = digest(steps[0][1])
    if case["known"] is not None:
        known_keys = _keys(case["known"])
        if case["known_root"] not in (None, first_root) or known_keys[1] not in [
            payload for _, payload, _ in steps
        ]:
            raise Refused("K6")
    newest = steps[-1][0]
    if not when(newest["issued"]) - SKEW <= when(case["now"]) <= when(newest["expires"]) + SKEW:
        raise Refused("K7")
    return numbers[-1], first_root


def _keys(text: str) -> tuple[dict[str, Any], bytes, dict[str, bytes]]:
    """Check steps K1 and K2 for one envelope."""
    try:
        payload, signatures = open_envelope(text.encode(), KEYS_TYPE)
        document = read(payload)
        fields = {"type", "version", "issued", "expires", "root", "publisher", "log"}
        if set(document) != fields or document["type"] != "frankly.keys/2":
            raise Refused("K1")
        if when(document["expires"]) - when(document["issued"]) > timedelta(days=400):
            raise Refused("K1")
        _require_points(document)
    except Refused:
        raise Refused("K1") from None
    parsed = (document, payload, signatures)
    _require_root(parsed, document, "K2")
    return parsed


def _require_points(document: dict[str, Any]) -> None:
    """Refuse keys of small order and non-canonical encodings, using arithmetic on the curve."""
    log = document["log"]
    named = [] if log is None else [log, *log["witnesses"]]
    for key in (*document["root"]["keys"], *document["publisher"]["keys"], *named):
        y = int.from_bytes(bytes.fromhex(key["public"]), "little") % 2**255
        if y >= edwards.P or any(
            edwards.times(8, (x, y)) == edwards.IDENTITY for x in edwards.roots(y)
        ):
            raise Refused("K1")


def _require_root(
    step: tuple[dict[str, Any], bytes, dict[str, bytes]], of: dict[str, Any], name: str
) -> None:
    keys = [bytes.fromhex(key["public"]) for key in of["root"]["keys"]]
    try:
        require_signed(step[1], KEYS_TYPE, step[2], keys, of["root"]["threshold"])
    except Refused:
        raise Refused(name) from None


def logged(
    case: dict[str, Any], log: dict[str, Any], now: datetime, logged_digests: list[str]
) -> None:
    """Check steps 8.1 to 8.3; roots and paths are recomputed from `logged_digests`, the digests in
    the log."""
    head, _, note = case["proof"].partition("\n\n")
    lines, (text, _, signed) = head.split("\n"), note.rpartition("\n\n")
    if lines[0] != "c2sp.org/tlog-proof@v1" or not re.fullmatch("index (0|[1-9][0-9]*)", lines[1]):
        raise Refused("8.1")
    text += "\n"
    origin, size, _ = text.split("\n", 2)
    marks = [line.split(" ")[1:] for line in signed.splitlines()]
    by_log = [
        raw for name, raw in marks if name == log["name"] and _good(raw, log, 1, text.encode())
    ]
    if origin != log["name"] or not by_log:
        raise Refused("8.1")
    witness_count = 0
    for witness in log["witnesses"]:
        for name, raw in marks:
            at = int.from_bytes(base64.b64decode(raw)[4:12], "big")
            statement = f"cosignature/v1\ntime {at}\n{text}".encode()
            fresh = (
                now - timedelta(days=30)
                <= datetime.fromtimestamp(min(at, 2**35), UTC)
                <= now + SKEW
            )
            witness_count += name == witness["name"] and fresh and _good(raw, witness, 4, statement)
    if witness_count < log["threshold"]:
        raise Refused("8.2")
    leaves = [leaf(bytes.fromhex(name[7:])) for name in logged_digests[: int(size)]]
    index = int(lines[1].split(" ")[1])
    honest = [base64.b64encode(entry).decode() for entry in inclusion_path(index, leaves)]
    if logged_digests[index] != case["digest"] or lines[2:] != honest:
        raise Refused("8.3")
    assert text == f"{origin}\n{size}\n{base64.b64encode(root(leaves)).decode()}\n"


def _good(raw: str, key: dict[str, Any], kind: int, message: bytes) -> bool:
    """Return True if a signature line verifies with this key."""
    public, data = bytes.fromhex(key["public"]), base64.b64decode(raw)
    hint = bytes.fromhex(_hint(key["name"], kind, public))
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(
            data[12:] if kind == 4 else data[4:], message
        )
    except InvalidSignature:
        return False
    return data[:4] == hint


def _hint(name: str, kind: int, public: bytes) -> str:
    return digest(name.encode() + b"\n" + bytes([kind]) + public)[7:15]
