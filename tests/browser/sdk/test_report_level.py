# SPDX-License-Identifier: Apache-2.0
"""Report level and app limits in the browser: figures, refusals and charges equal those of Python."""

from dataclasses import asdict, replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from frankly_protocol.audit import Charge, largest_level
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_sdk import Policy, PolicyRefused
from playwright.sync_api import Page

from tests.browser.sdk.reports import BUDGET, as_texts, documents
from tests.browser.sdk.wire import program
from tests.frankly_protocol.samples import lip_block, survey

pytestmark = pytest.mark.usefixtures("shared_page")


def in_python(document: SurveyDocument, cap: Fraction) -> dict[str, Any]:
    """Return the level of the whole report, with every ratio as a pair of numbers."""
    level = largest_level(document.versions, cap)
    return {
        "secrets": [
            [
                *(name, as_texts(s.level), as_texts(s.odds), s.unit, as_texts(s.delta), s.counted),
                *(as_texts(s.strata_lift), as_texts(s.strata_odds)),
            ]
            for name, s in level.secrets.items()
        ],
        "answers": [
            as_texts(v) for v in (level.answers.level, level.answers.odds, level.answers.delta)
        ],
        "cost": [as_texts(v) for v in (level.cost.odds, level.cost.delta, level.ceiling)],
        "lines": [
            [b.block, b.counted_by, as_texts(b.odds), as_texts(b.delta)] for b in level.lines
        ],
        "posteriors": [
            [p.block, p.secret, p.sensitive, as_texts(p.bound)] for p in level.posteriors
        ],
    }


def test_levels_equal_those_of_the_python_sdk(page: Page, full: bool) -> None:
    surveys = documents(11, 3000 if full else 300)
    payloads = [document.payload().decode() for document in surveys]
    for cap in (Fraction(0), Fraction(2, 100), Fraction(9, 100)):
        expected = [in_python(document, cap) for document in surveys]
        request = {"payloads": payloads, "cap": list(cap.as_integer_ratio())}
        by_browser = page.evaluate(program("levels"), request)
        different = [pair for pair in zip(expected, by_browser, strict=True) if pair[0] != pair[1]]
        assert different == [], (len(different), different[0])
        secrets = [secret for level in expected for secret in level["secrets"]]
        assert sum(secret[5] is not None for secret in secrets) > 20  # a promise limits the odds
        assert sum(secret[2] is None for secret in secrets) > 20
        assert (
            sum(secret[6] not in (None, ["1", "1"]) for secret in secrets) > 20
        )  # strata carry information
        assert (
            sum(
                level["posteriors"][:1] != [] and level["posteriors"][0][3] != ["1", "1"]
                for level in expected
            )
            > 5
        )
        assert (cap == 0) == (
            not any(
                line[1] == "dp" and line[3] != ["0", "1"]
                for level in expected
                for line in level["lines"]
            )
        )


LIMITS: list[dict[str, Any]] = [
    {},
    {"cap": "0.5"},
    {"cap": "1.30", "delta_cap": "0.02"},
    {"cap": "2.123456", "delta_cap": "0.09"},
    {"cap": "64", "delta_cap": "0.05"},
    {"cap": "3", "max_ceiling": "0.6"},
    {"cap": "3", "max_ceiling": "2", "require_log": True},
    {"allow_unpinned": True},
]
NAMES = {
    "max_ceiling": "maxCeiling",
    "allow_unpinned": "allowUnpinned",
    "require_log": "requireLog",
    "delta_cap": "deltaCap",
    "final_surveys": "finalSurveys",
}
SPENT: list[list[Charge]] = [
    [],
    [],
    [Charge(Fraction(1))],
    [Charge(Fraction(3, 2))],
    [Charge(Fraction(5, 4), Fraction(1, 100))],
    [Charge(Fraction(8, 3), Fraction(3, 100)), Charge(Fraction(7, 5))],
    [Charge(None)],
]


def judged(
    document: SurveyDocument, policy: Policy, case: dict[str, Any], spent: list[Charge]
) -> dict[str, Any]:
    """Return the charge or refusal and the preview of the Python SDK."""
    level = policy.level(document)
    verdict: list[Any]
    try:
        charge = policy.check(
            document, level, pinned=case["pinned"], logged=case["logged"], spent=spent
        )
        verdict = [as_texts(charge.odds), as_texts(charge.delta)]
    except PolicyRefused as error:
        verdict = [
            type(error).__name__,
            error.code,
            error.field,
            error.detail.replace("final_surveys", "finalSurveys"),
        ]
    budget = policy.budget(document, level, spent, is_answered=case["answered"])
    figures = {BUDGET.get(name, name): value for name, value in asdict(budget).items()}
    return {"verdict": verdict, "budget": figures, "words": str(budget)}


def test_policies_refuse_charge_and_preview_as_in_python(page: Page, full: bool) -> None:
    random = Random(12)
    surveys = [
        replace(document, survey=f"{i:032x}")
        for i, document in enumerate(documents(14, 400 if full else 60))
    ]
    cases: list[dict[str, Any]] = []
    expected = []
    for i, document in enumerate(surveys):
        for limits in LIMITS:
            final: dict[str, Any] = {
                "final_surveys": random.choice(
                    [(), (), (document.survey,), ("ab" * 16, document.survey)]
                )
            }
            spent = random.choice(SPENT)
            case: dict[str, Any] = {name: random.random() < 0.7 for name in ("pinned", "logged")}
            case["answered"] = bool(spent) and random.random() < 0.2
            policy = Policy(**limits, **final)
            expected.append(judged(document, policy, case, spent))
            options = {
                NAMES.get(name, name): value
                for name, value in {**limits, "final_surveys": list(final["final_surveys"])}.items()
            }
            charged = [[as_texts(charge.odds), as_texts(charge.delta)] for charge in spent]
            cases.append({"survey": i, "policy": options, "spent": charged, **case})
    payloads = [document.payload().decode() for document in surveys]
    by_browser = page.evaluate(program("policies"), {"payloads": payloads, "cases": cases})
    different = [
        pair for pair in zip(cases, expected, by_browser, strict=True) if pair[1] != pair[2]
    ]
    assert different == [], (len(different), different[0])
    codes = {outcome["verdict"][1] for outcome in expected if len(outcome["verdict"]) == 4}
    reasons = ("cap", "ceiling", "composition", "final", "budget", "unpinned", "unlogged")
    assert codes == {f"policy_{reason}" for reason in reasons}
    details = {
        outcome["verdict"][3] for outcome in expected if outcome["verdict"][1] == "policy_budget"
    }
    for phrase in ("it uses up the whole budget", "have used up a δ of", "it would cost"):
        assert any(phrase in detail for detail in details), phrase
    assert any(outcome["verdict"][0] is None for outcome in expected)  # a final survey
    assert any(outcome["budget"]["delta"] != "0" for outcome in expected)


BAD_IDS: list[Any] = [
    "ab" * 16,
    None,
    1,
    [1],
    ["ab" * 16, "AB" * 16],
    ["ab" * 16 + "\n"],
    ["ab"],
    [None],
]


@pytest.mark.parametrize("surveys", BAD_IDS)
def test_final_surveys_are_a_list_of_ids(page: Page, surveys: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        Policy(final_surveys=surveys)
    refusal = page.evaluate(
        """(finalSurveys) => import("/sdk/ledger.js").then(({Policy}) => {
          try { new Policy({finalSurveys}); return null; } catch (error) { return [error.code, error.field]; }
        })""",
        surveys,
    )
    assert refusal == [caught.value.code, caught.value.field]


def test_the_level_of_a_large_form_is_found_in_linear_time(page: Page) -> None:
    """With 100 blocks of 16 LIP claims about different secrets, reducing ratios at every step takes
    minutes."""
    block = lip_block()
    (promise,) = block.promises
    assert promise.prior is not None
    blocks = []
    for i in range(100):
        promises = []
        for c in range(16):
            prior = replace(promise.prior, secret=f"s{i}-{c}")
            claim = replace(promise.claim, level=(2**52 + 17 * i + c, 2**51 + 31 * i + c))
            promises.append(replace(promise, claim=claim, prior=prior, secret=prior.secret))
        questions = tuple(replace(question, id=f"q{i}") for question in block.questions)
        blocks.append(replace(block, id=f"b{i}", questions=questions, promises=tuple(promises)))
    document = replace(survey(), blocks=tuple(blocks))
    result = page.evaluate(
        """async (text) => {
          const names = ["canonical", "documents", "levels"];
          const [canonical, documents, levels] = await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
          const bytes = canonical.bytesOf(text), digest = await canonical.digestOf(bytes);
          const survey = await documents.readSurvey(bytes, digest);
          const ceiling = (i) => [2n ** 53n - 1n - BigInt(i), 2n ** 47n + BigInt(i)];
          const open = survey.blocks.map((block, i) => ({...block, ceiling: ceiling(i)}));
          const start = performance.now(), level = levels.reportLevel({...survey, blocks: open});
          return [performance.now() - start, level.secrets.size, level.cost.odds !== null];
        }""",
        document.payload().decode(),
    )
    assert result[1:] == [1600, True]
    assert result[0] < 2000, result  # milliseconds; about 100 on an idle machine
