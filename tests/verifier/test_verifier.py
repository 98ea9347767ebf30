# SPDX-License-Identifier: Apache-2.0
"""Program frankly-verify: its own tests, its command line, and documents and results that the
product makes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol.audit import Claim, ln_up, report_level, work
from frankly_protocol.documents import SurveyDocument
from frankly_server.analysis import Analysis

from tests.frankly_protocol.samples import survey
from tests.frankly_server.analysis.test_counts import BLOCKS, PUBLIC, _rows
from tests.frankly_server.samples import SURVEY, put, released
from tests.migrated import migrated
from tests.verifier.conftest import go
from tests.verifier.driver import KEYS, NOW, ORIGIN, PUBLISHER, Verifier, canonical, signed

LIMIT_OF_LINES = 4600


def test_go_vet_is_clean_and_the_go_tests_pass(go_root: Path) -> None:
    """The Go tests run every vector of tests/vectors."""
    for arguments in (["vet", "./..."], ["test", "-count=1", "./..."]):
        done = go(go_root, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_no_dependencies(root: Path) -> None:
    assert "require" not in (root / "verifier" / "go.mod").read_text()
    assert not (root / "verifier" / "go.sum").exists()


def test_an_auditor_can_read_it(root: Path) -> None:
    sources = [p for p in (root / "verifier").glob("*.go") if not p.stem.endswith("_test")]
    lines = [line for path in sources for line in path.read_text().splitlines()]
    assert len(lines) <= LIMIT_OF_LINES


@pytest.fixture
def files(tmp_path: Path, root: Path) -> Path:
    """A signed document with every kind and notion, and its keys."""
    vectors = json.loads((root / "tests/vectors/documents.json").read_text())["documents"]
    payload = next(c["payload"] for c in vectors if c["name"] == "everything").encode()
    (tmp_path / "document.json").write_bytes(signed(payload, "survey", PUBLISHER))
    (tmp_path / "keys.json").write_bytes(KEYS)
    (tmp_path / "payload.json").write_bytes(payload)
    return tmp_path


def test_the_command_line_accepts_a_document(verifier: Verifier, files: Path) -> None:
    now = f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    digest = json.loads(verifier.run("document", str(files / "payload.json")).stdout)["digest"]
    link = f"{ORIGIN}/s/{SURVEY}#{digest.replace(':', '=')}"
    done = verifier.run(
        "document",
        *("--chain", str(files / "keys.json"), "--link", link, "--now", now),
        str(files / "document.json"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["cost"] == "7.8979"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "frankly-verify document"),
        (["document"], 2, "frankly-verify document"),
        (["nonsense", "x"], 2, "frankly-verify document"),
        (["document", "--colour", "red", "x"], 2, "not defined"),
        (["document", "no such file"], 3, "no such file"),
        (["document", "{payload}", "--now"], 2, "frankly-verify document"),
        (["document", "--now", "noon", "{payload}"], 6, "field now"),
        (["document", "--chain", "{payload}", "{payload}"], 6, "K1: document_envelope"),
        (["document", "{keys}"], 6, "payloadType"),
        (["keys", "{payload}"], 6, "K1: document_envelope"),
        (["log", "--chain", "{keys}", "--digest", "x", "{payload}"], 6, "names a log"),
        (["result", "{payload}"], 6, "json_invalid"),
        (["result", "--counts", "{payload}", "{payload}"], 6, "counts_invalid"),
    ],
)
def test_bad_input_is_named(
    verifier: Verifier, files: Path, arguments: list[str], code: int, words: str
) -> None:
    names = {"payload": str(files / "payload.json"), "keys": str(files / "keys.json")}
    done = verifier.run(*(argument.format(**names) for argument in arguments))
    assert done.returncode == code
    assert words in done.stderr
    assert "goroutine" not in done.stderr
    assert done.stdout == ""


def _combined(rng: Random, documents: list[Any]) -> str:
    """Return a document that combines blocks of several documents, about secrets with one or two names."""
    chosen = rng.sample(documents, rng.randrange(2, 5))
    document = chosen[0] | {"blocks": []}
    for number, block in enumerate(block for d in chosen for block in d["blocks"]):
        block["id"] = f"b{number}"
        for question in block["questions"]:
            question["id"] = f"q{number}-{question['id']}"
        for claim in block["claims"]:
            holder = claim.get("prior", claim)
            if "secret" in holder:
                holder["secret"] = rng.choice(["secret", "secret", "other"])
        document["blocks"].append(block)
    return canonical(document).decode()


def test_levels_of_reports_equal_those_of_the_product(verifier: Verifier, root: Path) -> None:
    """The test uses the documents of the vectors and combinations of their blocks."""
    documents = json.loads((root / "tests/vectors/documents.json").read_text())["documents"]
    payloads = [case["payload"] for case in documents]
    rng = Random(1)
    payloads += [
        _combined(rng, [json.loads(case["payload"]) for case in documents]) for _ in range(150)
    ]
    answers = verifier.batch({"document": payload} for payload in payloads)
    for payload, answer in zip(payloads, answers, strict=True):
        level = report_level(SurveyDocument.parse(payload.encode()))
        assert answer["cost"] == ln_up(level.cost.odds)
        secrets = {
            name: {
                "level": ln_up(s.level),
                "odds": ln_up(s.odds),
                "strata_odds": ln_up(s.strata_odds),
            }
            for name, s in level.secrets.items()
        }
        assert answer.get("secrets", {}) == secrets


def test_work_is_counted_as_the_product_counts_it(verifier: Verifier, root: Path) -> None:
    """A ceiling counts like a claim of ldp; this figure does not include the work for the report's level."""
    documents = json.loads((root / "tests/vectors/documents.json").read_text())["documents"]
    payloads = [case["payload"] for case in documents]
    answers = verifier.batch({"document": payload} for payload in payloads)
    for payload, answer in zip(payloads, answers, strict=True):
        expected = 0
        for block in SurveyDocument.parse(payload.encode()).blocks:
            claims = [Claim("ldp", (1, 1)), *(promise.claim for promise in block.promises)]
            expected += sum(work(block.mechanism, claim) for claim in claims)
        assert answer["work"] == expected, payload


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Analysis, bytes]]:
    """Released reports on a document with a block of every kind, and its payload."""
    database = migrated(f"sqlite:///{tmp_path_factory.mktemp('verifier') / 'frankly.db'}")
    document = put(
        database, replace(survey(*BLOCKS), strata=PUBLIC, min_reports=40, release_step=2)
    )
    released(database, document, _rows(document, 600, Random(11)))
    yield Analysis(database), document.payload()
    database.close()


def _check(
    verifier: Verifier, document: bytes, result: Any, counts: Any
) -> tuple[bool, dict[str, Any]]:
    request = {
        "result": json.dumps(result),
        "counts": json.dumps(counts),
        "documents": [document.decode()],
    }
    (answer,) = verifier.batch([request])
    return answer["valid"], answer


@pytest.mark.parametrize(("by", "level"), [(None, 0.95), ("region", 0.8)])
def test_results_are_recomputed_to_a_billionth(
    verifier: Verifier, analysis: tuple[Analysis, bytes], by: str | None, level: float
) -> None:
    service, document = analysis
    result = service.estimates(SURVEY, method="clt", level=level, by=by)
    counts = service.counts(SURVEY, by=[by] if by else [])
    valid, answer = _check(verifier, document, result, counts)
    assert valid, answer
    shown = [r for q in result["questions"] if q["status"] == "ok" for r in q["rows"]]
    assert answer["result"]["figures"] >= 5 * len(shown) * 0.8
    assert not answer["result"].get("skipped"), answer["result"]["skipped"]


@pytest.mark.parametrize("figure", ["estimate", "se", "low", "high", "margin"])
def test_a_figure_that_is_off_is_found(
    verifier: Verifier, analysis: tuple[Analysis, bytes], figure: str
) -> None:
    service, document = analysis
    result = json.loads(json.dumps(service.estimates(SURVEY, method="clt")))
    rows = [r for q in result["questions"] for r in q["rows"] if r["estimate"] is not None]
    rows[-1][figure] += 3e-9
    valid, answer = _check(verifier, document, result, service.counts(SURVEY))
    assert not valid
    assert answer["problem"]["code"] == "counts_invalid"
    assert answer["problem"]["field"].endswith("." + figure)


def test_counts_of_another_mechanism_are_found(
    verifier: Verifier, analysis: tuple[Analysis, bytes]
) -> None:
    service, document = analysis
    counts = json.loads(json.dumps(service.counts(SURVEY)))
    part = next(p for p in counts["parts"] if p["block"] == "plain")
    part["factors"][0]["weights"].reverse()
    valid, answer = _check(verifier, document, service.estimates(SURVEY), counts)
    assert not valid
    assert answer["problem"]["field"] == "parts.factors"
