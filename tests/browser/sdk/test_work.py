# SPDX-License-Identifier: Apache-2.0
"""The work budget in browsers: the same figures as in Python, and verifying in a worker."""

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

from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.audit.test_kinds import random_case, random_claim
from tests.frankly_protocol.audit.test_work import joint, many_secrets, srlip, table
from tests.frankly_protocol.every_kind import KINDS, block
from tests.frankly_protocol.samples import question, survey

FREE = b"<!doctype html><html lang=en><title>No policy</title>"
NO_WORKERS = b"""<!doctype html><html lang=en><meta http-equiv=Content-Security-Policy
content="script-src 'self'; worker-src 'none'"><title>No workers</title>"""


def case(mechanism: Mechanism, claim: Claim) -> dict[str, Any]:
    """A mechanism and a claim as the browser reads them."""
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


def test_the_figures_are_those_of_python(page: Page) -> None:
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
    """Eight yes-or-no questions with 16 reports and SRLIP, at the level needed or the given one."""
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
    """A survey that keeps its promise, and one that breaks it."""
    return [document.payload().decode() for document in (slow(), slow(Fraction(1001, 1000)))]


def verdicts(page: Page, payloads: list[str], folder: str = "/sdk/") -> tuple[list[Any], list[str]]:
    """Return the verdicts of step 9 on the surveys, and the addresses of the workers that were started."""
    workers: list[str] = []
    page.on("worker", lambda worker: workers.append(worker.url))
    return page.evaluate(program("beside"), {"payloads": payloads, "folder": folder}), workers


def test_a_survey_that_takes_long_is_verified_in_a_worker(
    page: Page, wire: Wire, payloads: list[str]
) -> None:
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    (accepted, refused), workers = verdicts(page, payloads)
    assert workers == [f"{wire.origin}/sdk/verifier.js"] * 2
    assert accepted["said"] is None
    assert refused["said"][:3] == ["document_privacy", "blocks[0].claims[0].level", "not_kept"]
    assert (
        accepted["longest"] < 0.5 * accepted["took"]
    )  # the bench measures how long a page is busy


def test_without_a_worker_the_verdicts_are_the_same(
    page: Page, wire: Wire, payloads: list[str], browser: Browser
) -> None:
    wire.pages["/free.html"] = FREE
    wire.pages["/none.html"] = NO_WORKERS
    page.goto(f"{wire.origin}/free.html")
    beside = [result["said"] for result in verdicts(page, payloads)[0]]
    for address in (
        "/blank.html",
        "/none.html",
    ):  # policies without scripts by address, and without workers
        second_page = browser.new_page()
        second_page.goto(wire.origin + address)
        results, _ = verdicts(second_page, payloads)
        assert [result["said"] for result in results] == beside
        second_page.close()


def test_short_surveys_start_no_worker(page: Page, wire: Wire) -> None:
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    (result,), workers = verdicts(page, [survey(block("dense", "srlip")).payload().decode()])
    assert (result["said"], workers) == (None, [])


def test_documents_over_the_budget_are_refused_in_both_languages(page: Page, wire: Wire) -> None:
    """No level of a report with 1600 secrets is computed, neither in a worker nor in the page."""
    wire.pages["/free.html"] = FREE
    page.goto(f"{wire.origin}/free.html")
    (result,), workers = verdicts(page, [many_secrets(100).payload().decode()])
    assert (result["said"][:2], workers) == (["document_work_limit", "blocks"], [])
