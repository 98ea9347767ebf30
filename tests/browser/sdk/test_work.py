# SPDX-License-Identifier: Apache-2.0
"""Work budget in browsers: the same figures as in Python, and verification in a worker."""

import re
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from frankly_protocol.audit import Claim, stated_ceiling, work, worst
from frankly_protocol.audit.work import MAX_COUNTS, MAX_WORK
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from playwright.sync_api import Browser, Page

from tests.browser.sdk.wire import FOLDERS, Wire, program
from tests.frankly_protocol.audit.test_kinds import random_case, random_claim
from tests.frankly_protocol.audit.test_work import joint, many_secrets, srlip, table
from tests.frankly_protocol.every_kind import KINDS, block
from tests.frankly_protocol.samples import ldp_block, question, survey

FREE = b"<!doctype html><html lang=en><title>No policy</title>"
NO_WORKERS = b"""<!doctype html><html lang=en><meta http-equiv=Content-Security-Policy
content="script-src 'self'; worker-src 'none'"><title>No workers</title>"""
NO_ADDRESSES = b"""<!doctype html><html lang=en><meta http-equiv=Content-Security-Policy
content="require-trusted-types-for 'script'; trusted-types 'none'"><title>No scripts by address</title>"""


def case(mechanism: Mechanism, claim: Claim) -> dict[str, Any]:
    """Return a mechanism and a claim in the format that the browser reads."""
    fields = {
        "joint": claim.joint,
        "attributes": claim.attributes,
        "lower_bounds": claim.lower_bounds,
        "sensitive": claim.sensitive,
        "delta": claim.delta,
        "levels": claim.levels,
    }
    given_fields = {name: value for name, value in fields.items() if value is not None}
    body = {"notion": claim.notion, "level": claim.level, **given_fields}
    return {"kind": mechanism.kind, "params": mechanism.params_json(), "claim": body}


def test_the_figures_equal_those_of_python(page: Page) -> None:
    cases = [random_case(number) for number in range(600)]
    random = Random(5)
    for name in ("ldp", "dp", "secret-ldp", "lip", "alip", "srlip", "rldp", "dpv", "metric-ldp"):
        cases += [(KINDS[kind], random_claim(random, name, (2, 2))) for kind in KINDS]
        cases.append((table(16, 9), random_claim(random, name, (2, 8))))
    cases += [srlip(8, 128, 2), (table(24, 64), Claim("lip", (2, 1), joint(40, 24)))]
    measured = page.evaluate(
        program("work"), [case(*mechanism_and_claim) for mechanism_and_claim in cases]
    )
    assert measured["limits"] == [MAX_WORK, MAX_COUNTS]
    for mechanism_and_claim, units in zip(cases, measured["found"], strict=True):
        assert units == work(*mechanism_and_claim), mechanism_and_claim


def slow(level: Fraction | None = None) -> SurveyDocument:
    """Return eight yes-or-no questions with 16 reports and SRLIP, at the level needed or at `level`."""
    random = Random(8)
    rows = []
    for _ in range(256):
        row = [2**44 - random.randrange(2**43) for _ in range(16)]
        row[random.randrange(16)] += 2**48 - sum(row)
        rows.append(tuple(row))
    mechanism = DenseMechanism(48, tuple(rows))
    counts = tuple(tuple(random.randrange(100, 1000) for _ in range(256)) for _ in range(2))
    claim = Claim("srlip", (9, 1), counts, attributes=(2,) * 8)
    if level is None:
        needed = worst(mechanism, claim).ratio or Fraction(0)
        level = Fraction(-(-needed.numerator * 2**40 // needed.denominator), 2**40)
    claim = replace(claim, level=level.as_integer_ratio())
    habits = Block(
        id="habits",
        questions=tuple(question(f"q{i}", "no", "yes") for i in range(8)),
        mechanism=mechanism,
        promises=(Promise.under(claim, Prior("secret", ("a", "b"), (counts,), "made up")),),
        design_prior=(1,) * 256,
        ceiling=stated_ceiling(mechanism),
        mechanism_name="made-up",
        certificate=None,
    )
    return survey(habits)


@pytest.fixture(scope="module")
def payloads() -> list[str]:
    """Return a survey that keeps its promise and a survey that breaks its promise."""
    return [document.payload().decode() for document in (slow(), slow(Fraction(1001, 1000)))]


def verdicts(page: Page, payloads: list[str], folder: str = "/sdk/") -> tuple[list[Any], list[str]]:
    """Return the verdicts of step 9 on the surveys, and the URLs of the started workers."""
    workers: list[str] = []
    page.on("worker", lambda worker: workers.append(worker.url))
    return page.evaluate(program("beside"), {"payloads": payloads, "folder": folder}), workers


def test_a_survey_is_read_and_verified_in_a_worker(
    page: Page, wire: Wire, payloads: list[str]
) -> None:
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    (accepted, refused), workers = verdicts(page, payloads)
    assert workers == [f"{wire.origin}/sdk/verifier.js"]  # one for both
    assert (accepted["said"], accepted["yielded"]) == (None, 2)
    assert refused["said"][:3] == ["document_privacy", "blocks[0].claims[0].level", "not_kept"]
    assert (
        accepted["longest"] < 0.5 * accepted["took"]
    )  # the bench measures how long the page is blocked


def test_a_short_survey_is_verified_in_a_worker_as_well(page: Page, wire: Wire) -> None:
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    (result,), workers = verdicts(page, [survey(ldp_block()).payload().decode()])
    assert (result["said"], result["yielded"]) == (None, 2)
    assert workers == [f"{wire.origin}/sdk/verifier.js"]
    assert page.evaluate("Worker.name") == "Worker", "the page's own class is back"


@pytest.mark.parametrize("source", ["src/beside.js", "bundle/core.js"])
def test_bundlers_can_find_the_worker(source: str) -> None:
    """They look for this expression; most of them only if `Worker` is the global variable."""
    text = (FOLDERS["src"].parent / source).read_text("utf-8")
    expression = (
        r"""new Worker\(new URL\("\./verifier\.js", ?import\.meta\.url\), ?\{ ?type: ?"module","""
    )
    assert len(re.findall(expression, text)) == 1
    declared = r"""\((?:/\*.*?\*/ ?)?Worker\)? ?=>|(?:var|let|const|class|function) Worker\b|\{ ?Worker ?\} ="""
    assert re.findall(declared, text) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_survey_from_a_worker_draws_as_one_that_the_page_read(
    page: Page, wire: Wire, kind: str
) -> None:
    """Mechanisms cannot be sent, so the page makes them again from their parameters."""
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    notion = "ldp" if kind == "agreement" else "srlip"
    payload = survey(block(kind, notion)).payload().decode()
    assert page.evaluate(SAME, payload) == [True, True, True]


SAME = """async (text) => {
  const names = ["canonical", "beside", "verifier", "survey", "explain"];
  const [{bytesOf, digestOf}, {checkBeside}, {check}, {reportLength}, {explain}] =
    await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
  const bytes = bytesOf(text), digest = await digestOf(bytes);
  const seen = await Promise.all([check, checkBeside].map(async (one) => {
    const steps = one(bytes, digest, [0n, 1n]), survey = (await steps.next()).value, level = (await steps.next()).value;
    const draws = survey.blocks.map(({mechanism, questions}) => {
      let state = 1;
      const draw = (bits) => (state = (state * 48271) % 2147483647) % 2 ** bits;
      return mechanism.sample(mechanism.kind === "agreement" ? questions.map(() => 0) : 0, draw);
    });
    return [JSON.stringify(draws), reportLength(survey), String(explain(survey, level, []))];
  }));
  return seen[0].map((own, i) => own === seen[1][i]);
}"""


def test_without_a_worker_the_verdicts_are_the_same(
    page: Page, wire: Wire, payloads: list[str], browser: Browser
) -> None:
    wire.pages["/free.html"] = FREE
    wire.pages |= {"/none.html": NO_WORKERS, "/addresses.html": NO_ADDRESSES}
    page.goto(f"{wire.origin}/free.html")
    beside = [result["said"] for result in verdicts(page, payloads)[0]]
    for address in ("/addresses.html", "/none.html"):
        second_page = browser.new_page()
        second_page.goto(wire.origin + address)
        results, _ = verdicts(second_page, payloads)
        assert [result["said"] for result in results] == beside
        assert second_page.evaluate("Worker.name") == "Worker", address
        second_page.close()


# What other scripts have made of `Worker`, and whether the survey is verified in a worker.
REPLACED = {
    "a function": ("const Own = Worker; globalThis.Worker = function (...given) { return new Own(...given); };", True),
    "a subclass": ("globalThis.Worker = class extends Worker {};", True),
    "a proxy": ("globalThis.Worker = new Proxy(Worker, {});", True),
    "a bound class": ("globalThis.Worker = Worker.bind(null);", True),
    "an arrow function": ("globalThis.Worker = () => undefined;", False),
    "a class that refuses": ("globalThis.Worker = class { constructor() { throw new Error(); } };", False),
    "a constant": ("Object.defineProperty(globalThis, 'Worker', {value: Worker, writable: false});", False),
    "a getter": ("const Own = Worker; Object.defineProperty(globalThis, 'Worker', {get: () => Own});", False),
    "an accessor": (
        "let own = Worker; Object.defineProperty(globalThis, 'Worker', {get: () => own, set: (one) => (own = one)});",
        True,
    ),
    "nothing": ("delete globalThis.Worker;", False),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLACED)
def test_a_page_keeps_its_own_worker_class(page: Page, wire: Wire, name: str) -> None:
    code, is_beside = REPLACED[name]
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    page.evaluate(f"() => {{ {code} globalThis.kept = globalThis.Worker; }}")
    descriptor = "JSON.stringify(Object.getOwnPropertyDescriptor(globalThis, 'Worker'))"
    before = page.evaluate(descriptor)
    (result,), workers = verdicts(page, [survey(ldp_block()).payload().decode()])
    assert (result["said"], result["yielded"]) == (None, 2)
    assert len(workers) == int(is_beside)
    assert page.evaluate("kept === globalThis.Worker")
    assert page.evaluate(descriptor) == before


BROKEN = {  # what workers do instead of verifying
    "before reading": "throw new Error();",
    "after reading": """import "/sdk/verifier.js";
      const post = MessagePort.prototype.postMessage;
      MessagePort.prototype.postMessage = function (message) {
        post.call(this, message?.value?.blocks ? message : null);
      };""",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_worker_that_fails_never_passes_a_survey(
    page: Page, wire: Wire, payloads: list[str], name: str
) -> None:
    """The page then verifies the survey itself: the broken promise is found all the same."""
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    page.evaluate(
        """(code) => {
          const source = code.replace("/sdk/", `${location.origin}/sdk/`);
          const address = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
          globalThis.Worker = class extends Worker { constructor(_, options) { super(address, options); } };
        }""",
        BROKEN[name],
    )
    (accepted, refused), workers = verdicts(page, payloads)
    assert {address.partition(":")[0] for address in workers} == {"blob"}
    assert (accepted["said"], accepted["yielded"]) == (None, 2)
    assert refused["said"][:3] == ["document_privacy", "blocks[0].claims[0].level", "not_kept"]


def test_a_worker_that_never_answers_is_waited_for_half_a_minute(page: Page, wire: Wire) -> None:
    wire.pages["/free.html"] = FREE
    page.clock.install()
    page.goto(f"{wire.origin}/free.html")
    page.evaluate(
        """(text) => {
          globalThis.Worker = class extends EventTarget { postMessage() {} terminate() {} };
          const run = async () => {
            const [{bytesOf}, {checkBeside}] =
              await Promise.all(["canonical", "beside"].map((name) => import(`/sdk/${name}.js`)));
            const steps = checkBeside(bytesOf(text), "sha256:any", [0n, 1n]);
            globalThis.said = steps.next().then(() => "passed", (e) => [e.name, e.code, e.detail]);
          };
          globalThis.begun = run();
        }""",
        survey(ldp_block()).payload().decode(),
    )
    page.evaluate("begun")
    page.clock.run_for(31_000)
    assert page.evaluate("said") == ["NetworkError", "limit", "no_part"]


def test_documents_over_the_budget_are_refused_in_both_languages(page: Page, wire: Wire) -> None:
    """No level of a report with 1600 secrets is computed."""
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    (result,), _ = verdicts(page, [many_secrets(100).payload().decode()])
    assert (result["said"][:2], result["yielded"]) == (["document_work_limit", "blocks"], 1)
