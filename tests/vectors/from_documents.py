# SPDX-License-Identifier: Apache-2.0
"""Vectors of survey documents of every kind and notion: accepted, or refused at a numbered step."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from frankly_protocol import canonical
from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import KEYS_TYPE, SURVEY_TYPE, Envelope
from frankly_protocol.errors import FranklyError
from frankly_protocol.trust import Role
from frankly_sdk._trusted import Remembered, accept_survey
from frankly_sdk.link import SurveyLink

from tests.frankly_protocol.every_kind import below, documents
from tests.frankly_protocol.samples import (
    NOW,
    PUBLISHER,
    STRANGER,
    in_strata,
    ldp_block,
    sealed,
    survey,
    with_item,
)

Case = dict[str, Any]
ROLE = Role((PUBLISHER.public,), 1)
ORIGIN = "https://collect.example"
PLAIN = survey(ldp_block())
FORBIDDEN: dict[str, tuple[str, Any, int | None]] = {
    "an unknown field": ("extra", 1, 4),
    "a field too few": ("title", ..., 4),
    "a fraction": ("min_reports", 1.5, 4),
    "released every minute": ("release_every", "minute", 4),
    "released one by one": ("release_step", 1, 4),
    "a step above the minimum": ("release_step", 51, 4),
    "a boolean for a number": ("version", True, 4),
    "version 0": ("version", 0, 4),
    "a second version without a predecessor": ("version", 2, 4),
    "capitals in an id": ("survey", "AB" * 16, 4),
    "a date without a time": ("issued", "2026-01-01", 4),
    "valid for more than 400 days": ("expires", "2028-01-01T00:00:00Z", 4),
    "closes before it opens": ("closes", "2026-01-01T00:00:00Z", 4),
    "a text without its language": ("languages", ["en", "fr"], 4),
    "a language twice": ("languages", ["en", "en"], 4),
    "a text that turns right to left": ("title.en", "a\u202eb", 4),
    "no blocks": ("blocks", [], 4),
    "one choice": ("blocks.0.questions.0.choices.1", ..., 4),
    "the same choice twice": ("blocks.0.questions.0.choices.1.id", "no", 4),
    "a row that does not sum to 2^48": ("blocks.0.weights.0.0", 1, 4),
    "a negative weight": ("blocks.0.weights.0", [2**48 + 1, -1], 4),
    "a row too few": ("blocks.0.weights.1", ..., 4),
    "a report that is never sent": ("blocks.0.weights", [[2**48, 0], [2**48, 0]], 4),
    "bits beyond 48": ("blocks.0.bits", 64, 4),
    "a design prior with a zero": ("blocks.0.design_prior", [1, 0], 4),
    "a claim of another shape": ("blocks.0.claims.0.delta", [0, 1], 4),
    "no claim": ("blocks.0.claims", [], 4),
    "a level with a zero": ("blocks.0.claims.0.level.1", 0, 4),
    "surplus token key": ("token", {"kind": "invite", "key": "AAAA"}, 4),
    "the next major version": ("type", "frankly.survey/3", 5),
    "an unknown kind": ("blocks.0.kind", "sparse", 5),
    "an unknown notion": ("blocks.0.claims.0.notion", "trust-me", 5),
    "an unknown kind of token": ("token", {"kind": "blind", "key": None}, 5),
    "a ceiling that is not the mechanism's": ("blocks.0.ceiling", [3, 1], 9),
    "a ceiling kept silent": ("blocks.0.ceiling", None, 9),
    "a level below one": ("blocks.0.claims.0.level", [1, 2], 9),
    "a level too low by a hair": ("blocks.0.claims.0.level.1", 2**48 + 2**10, 9),
}

WANTED = "blocks.0.questions.0.wanted"
FIGURES: dict[str, tuple[str, Any, int | None]] = {
    "asked for a distribution": (WANTED, {"figure": "distribution"}, None),
    "asked for a contrast": (WANTED, {"figure": "contrast", "numbers": ["-0.5", "1"]}, None),
    "asked for a mean without scores": (WANTED, {"figure": "mean"}, 4),
}
ANCHOR = "blocks.0.questions.0.anchor"
KNOWN = {"counts": [11, 1], "source": "Destatis, births 2023"}
ANCHORS: dict[str, tuple[str, Any, int | None]] = {
    "an anchor": (ANCHOR, KNOWN, None),
    "an anchor of a choice that nobody makes": (ANCHOR, KNOWN | {"counts": [0, 1]}, None),
    "an anchor that counts nobody": (ANCHOR, KNOWN | {"counts": [0, 0]}, 4),
    "an anchor of a public question": (
        "strata",
        [
            {
                "id": "born",
                "text": {"en": "born?"},
                "choices": [{"id": name, "label": {"en": name}} for name in ("early", "late")],
                "anchor": KNOWN,
            }
        ],
        4,
    ),
}
FORM = "blocks.0.components.0."
COVER = FORM + "pools.1.cover"
SECOND = "blocks.0.questions.2.anchor"
FORMS: dict[str, tuple[str, Any, int | None]] = {
    "a form": ("title.en", "A form", None),
    "a question asked a second time": (SECOND, {"repeats": "form-1"}, None),
    "a question asked a second time with other choices": (SECOND, {"repeats": "form-0"}, 4),
    "a form with sets of two answers": (COVER, 2, None),
    "a form whose sets have other weights": (COVER + ".0.1", 3, None),
    "a form with another score": (FORM + "pools.0.score", 1, None),
    "a form with a score too much": (FORM + "pools.0.score", 9, 4),
    "a form with another threshold": (FORM + "threshold", 3, None),
    "a form with a threshold out of reach": (FORM + "threshold", 4, 4),
    "a form whose sets cover one answer more often": (COVER + ".0.1", 4, 4),
    "a form with an empty set": (COVER + ".2.0", "0", 4),
    "a form with a full set": (COVER + ".1.0", "7", 4),
    "a form with a set of other answers": (COVER + ".1.0", "e", 4),
    "a form with a set twice": (COVER + ".1.0", "1", 4),
    "a form with sets of all answers": (COVER, 3, 4),
    "a form whose chances do not sum to 2^48": (FORM + "chance", 1 << 44, 4),
    "a form with more picked than there are": (FORM + "pools.0.pick", 2, 4),
    "a form with a part out of order": ("blocks.0.parts.3", [2, 0], 4),
    "a form with a part of a fourth question": ("blocks.0.parts.3", [0, 3], 4),
    "a form with a part in no pool": ("blocks.0.components.1.pools.1", ..., 4),
    "a form with a question twice in a component": (FORM + "pools.0.parts", [3], 4),
    "a form with a question too many": ("blocks.0.choices", [2, 3, 3, 2], 4),
    "a form with an unknown parameter": (FORM + "extra", 1, 4),
    "a form that weighs disagreement more": ("blocks.0.agree", 1, 4),
    "a form with another ceiling": ("blocks.0.agree", 8, 9),
    "a form with a lower level": ("blocks.0.claims.0.level", [10, 3], 9),
    "a form that promises another notion": (
        "blocks.0.claims.0",
        {"notion": "dp", "level": [7, 2], "delta": [0, 1]},
        9,
    ),
}
STRATA = in_strata(((60, 40), (50, 50)), ((30, 20), (40, 60)))
NORTH, SOUTH = [[60, 40], [50, 50]], [[30, 20], [40, 60]]
TABLES = "blocks.0.claims.0.prior.tables"
REGIONS = [{"id": name, "label": {"en": name}} for name in ("north", "south", "east")]
BY_STRATUM: dict[str, tuple[str, Any, int | None]] = {
    "a table for each stratum": (TABLES, [NORTH, SOUTH], None),
    "one table beside strata": (TABLES, [[[90, 60], [90, 110]]], None),
    "a secret that cannot be in one stratum": (TABLES, [[[60, 40], [0, 0]], SOUTH], None),
    "a level that is broken in one stratum only": (TABLES, [NORTH, [[30, 0], [0, 60]]], 9),
    "tables for other strata": (TABLES, [NORTH] * 3, 4),
    "a stratum that nobody is in": (TABLES, [NORTH, [[0, 0], [0, 0]]], 4),
    "tables of two sizes": (TABLES, [NORTH, [[60, 40]]], 4),
    "a table too few": ("strata.0.choices", REGIONS, 4),
    "a row too long": (TABLES, [NORTH, [[30, 20], [40, 60, 1]]], 4),
    "no list of tables": (TABLES, None, 4),
    "no table": (TABLES, [], 4),
    "a text for a count": (TABLES, [NORTH, [["30", 20], [40, 60]]], 4),
    "a secret that nobody has": (TABLES, [[[60, 40], [0, 0]]] * 2, 9),
    "counts beyond 2^53": (TABLES, [NORTH, [[2**53 - 1, 1], [40, 60]]], 4),
}
ITEM = with_item(survey(ldp_block()))
CHECK = "instructed."
ITEMS: dict[str, tuple[str, Any, int | None]] = {
    "an instructed item": ("title.en", "With an item", None),
    "an item that asks for the last choice": (CHECK + "answer", "d", None),
    "an item whose answer is none of two choices": (CHECK + "choices", REGIONS[:2], 4),
    "an item that asks for no choice of its own": (CHECK + "answer", "e", 4),
    "an item without an answer": (CHECK + "answer", ..., 4),
    "an item with an answer that is no id": (CHECK + "answer", 1, 4),
    "an item with one choice": (CHECK + "choices", REGIONS[:1], 4),
    "an item with the id of a question": (CHECK + "id", "affair", 4),
    "an item with a role": (CHECK + "choices.0.role", "no_answer", 4),
    "an item with a rule": (CHECK + "ask_if", {"question": "affair", "choices": ["yes"]}, 4),
    "an item with an unknown field": (CHECK + "extra", 1, 4),
    "an item with an anchor": (CHECK + "anchor", {"counts": [1, 1, 1, 1], "source": "x"}, 4),
    "an item beside an anchor": (ANCHOR, KNOWN, 4),
    "an item that is null": ("instructed", None, 4),
    "two items": ("instructed", [], 4),
}
PUBLIC = {"id": "affair", "text": {"en": "affair?"}, "choices": REGIONS}
ITEMS |= {
    "a public question with the id of a question": ("strata", [PUBLIC], 4),
    "two public questions with one id": ("strata", [PUBLIC | {"id": "region"}] * 2, 4),
    "an item with the id of a public question": ("strata", [PUBLIC | {"id": "check"}], 4),
}
WITH_PRIOR: dict[str, tuple[str, Any, int | None]] = {
    "an item beside a promise on a prior": (
        "instructed",
        json.loads(ITEM.payload())["instructed"],
        4,
    )
}


@cache
def sample_documents() -> dict[str, SurveyDocument]:
    """Return the documents of every kind and notion; their levels are computed once by brute force."""
    return documents()


def good_documents() -> Case:
    """Return a document of every kind and notion, exactly at its level."""
    listed = []
    for name, document in sample_documents().items():
        payload = document.payload()
        SurveyDocument.parse(payload).require_private()
        listed.append({"name": name, "digest": document.digest, "payload": payload.decode()})
    return {"documents": listed}


def privacy_documents() -> Case:
    """Return the same documents, each with one level slightly lowered; each is refused at step 9.

    A case has the name of the good document, the path of the changed field, and its new value.
    """
    listed = []
    for name, document in sample_documents().items():
        if name == "everything":
            continue
        (only,) = document.blocks
        (promise,) = only.promises
        for less in below(promise):
            field = next(
                f for f in ("delta", "level", "low_level") if _of(less, f) != _of(promise, f)
            )
            bent = replace(document, blocks=(replace(only, promises=(less,)),))
            entry = {
                "name": name,
                "path": f"blocks.0.claims.0.{field}",
                "value": list(_of(less, field)),
            }
            listed.append({**entry, "digest": bent.digest, **_privacy(bent)})
    return {"documents": listed}


def _of(promise: Any, field: str) -> Any:
    return getattr(promise.claim, field)


def _privacy(document: SurveyDocument) -> Case:
    try:
        SurveyDocument.parse(document.payload()).require_private()
    except FranklyError as error:
        return {"step": 9, "code": error.code, "field": error.field}
    raise AssertionError("a document below its level was accepted")


def acceptance() -> Case:
    """Return envelopes, links, remembered documents and times, each accepted or refused at a step."""
    pinned = PLAIN.digest
    later = replace(PLAIN, version=2, prev=pinned)
    same_version = replace(PLAIN, title={"en": "Another survey"})
    cases = [
        _case("pinned", sealed(PLAIN.payload()), pin=pinned),
        _case("not pinned", sealed(PLAIN.payload())),
        _case("seen before", sealed(PLAIN.payload()), remembered=PLAIN),
        _case("a newer version", sealed(later.payload()), remembered=PLAIN),
        _case(
            "within ten minutes of its opening",
            sealed(PLAIN.payload()),
            now=PLAIN.opens - timedelta(minutes=9),
        ),
        _case(
            "within ten minutes of its end",
            sealed(PLAIN.payload()),
            now=PLAIN.closes + timedelta(minutes=9),
        ),
        _case("larger than an envelope may be", None, 1),
        _case("not JSON", b"<html>", 2),
        _case(
            "a keys document", Envelope.seal(KEYS_TYPE, PLAIN.payload(), (PUBLISHER,)).to_bytes(), 2
        ),
        _case("a stranger signed", sealed(PLAIN.payload(), STRANGER), 3),
        _case("nobody signed", _unsigned(), 3),
        _case(
            "eleven minutes early",
            sealed(PLAIN.payload()),
            6,
            now=PLAIN.opens - timedelta(minutes=11),
        ),
        _case(
            "eleven minutes late",
            sealed(PLAIN.payload()),
            6,
            now=PLAIN.closes + timedelta(minutes=11),
        ),
        _case("rollback", sealed(PLAIN.payload()), 7, remembered=later),
        _case("equivocation", sealed(same_version.payload()), 7, remembered=PLAIN),
        _case(
            "reports to another port of the link's host",
            _collecting("https://collect.example:8443/in"),
        ),
        _case("reports to another host", _collecting("https://other.example/in"), 4),
        _case(
            "reports to a host that only ends so", _collecting("https://a.collect.example/in"), 4
        ),
        _case("reports to the device itself", _collecting("http://127.0.0.1:9200/_bulk?x=1"), 4),
        _case("reports to the device itself by name", _collecting("https://localhost/in"), 4),
        _case("reports to the device itself by IPv6", _collecting("http://[::1]:9200/in"), 4),
        _case("another document than pinned", sealed(same_version.payload()), 8, pin=pinned),
        _case("a newer version than pinned", sealed(later.payload()), 8, pin=pinned),
    ]
    body = json.loads(PLAIN.payload())
    cases.append(_case("spaces after colons", sealed(json.dumps(body, sort_keys=True).encode()), 4))
    form = sample_documents()["agreement ldp"]
    for document, edits in (
        (PLAIN, FORBIDDEN),
        (PLAIN, FIGURES),
        (PLAIN, ANCHORS),
        (STRATA, BY_STRATUM),
        (form, FORMS),
        (ITEM, ITEMS),
        (STRATA, WITH_PRIOR),
    ):
        for name, (path, value, step) in edits.items():
            cases.append(_case(name, sealed(_edited(path, value, document)), step))
    role = {"public_keys": [PUBLISHER.public.raw.hex()], "threshold": 1}
    return {"publisher": role, "origin": ORIGIN, "survey": PLAIN.survey, "cases": cases}


def _collecting(url: str) -> bytes:
    return sealed(replace(PLAIN, collect_url=url).payload())


def _edited(path: str, value: Any, document: SurveyDocument) -> bytes:
    body = json.loads(document.payload())
    put(body, path, value)
    if value == 1.5:  # `canonical.dumps` refuses fractions
        return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    return canonical.dumps(body)


def put(body: Any, path: str, value: Any) -> None:
    """Set the value at a path such as blocks.0.bits; `...` removes it."""
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        body = body[part]
    if value is ...:
        del body[last]
    else:
        body[last] = value


def _unsigned() -> bytes:
    body = json.loads(sealed(PLAIN.payload()))
    body["signatures"][0]["sig"] = ""
    return json.dumps(body).encode()


def _case(
    name: str,
    envelope: bytes | None,
    step: int | None = None,
    *,
    pin: str | None = None,
    remembered: SurveyDocument | None = None,
    now: datetime = NOW,
) -> Case:
    """Return the case of one envelope; None stands for 6 MiB of spaces."""
    data = b" " * 6 * 2**20 if envelope is None else envelope
    stored = None
    if remembered is not None:
        stored = Remembered(remembered.version, remembered.digest, sealed(remembered.payload()))
    link = SurveyLink(ORIGIN, PLAIN.survey, pin)
    case = {
        "name": name,
        "envelope": None if envelope is None else envelope.decode(),
        "payload_type": SURVEY_TYPE,
        "pin": pin,
        "remembered": None
        if remembered is None
        else {"version": remembered.version, "digest": remembered.digest},
        "now": format_time(now),
    }
    return {**case, **_outcome(lambda: accept_survey(data, link, ROLE, stored, now), step, name)}


def _outcome(judge: Callable[[], object], step: int | None, name: str) -> Case:
    try:
        judge()
    except FranklyError as error:
        assert step is not None, (name, error)
        return {"step": step, "code": error.code, "field": error.field}
    assert step is None, name
    return {"step": None, "code": None, "field": None}
