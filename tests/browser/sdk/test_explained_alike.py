# SPDX-License-Identifier: Apache-2.0
"""Explanations of surveys: both SDKs produce the same text in every language."""

import json
from dataclasses import replace
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.audit import Claim
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.explanation.catalogue import Texts, plural
from frankly_protocol.explanation.explain import explain
from frankly_protocol.languages import EXPLAINED
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.questions import Anchor, Question
from frankly_protocol.tokens import TokenRule
from frankly_sdk import Policy
from playwright.sync_api import Page

from tests.browser.sdk import reports
from tests.browser.sdk.test_instructed import CHECK
from tests.browser.sdk.test_same_as_python import DOCUMENTS, FORMS
from tests.browser.sdk.wire import program
from tests.frankly_protocol.asked import AGE, DRUGS, SIGNS_ALWAYS, asked, form
from tests.frankly_protocol.audit.definitions import LARGE_FORMS
from tests.frankly_protocol.every_kind import form_block
from tests.frankly_protocol.samples import armed, ldp_block, question, survey
from tests.frankly_protocol.sourced import SOURCED
from tests.frankly_sdk.fakes import payable_survey
from tests.frankly_sdk.test_explained_levels import ONE_SIDED
from tests.frankly_sdk.texts import BAD as BAD_TEXTS
from tests.frankly_sdk.told import Told
from tests.narrowing import present

pytestmark = pytest.mark.usefixtures("shared_page")
EXPLAIN = program("explain")


def test_surveys_are_explained_in_the_same_words(page: Page) -> None:
    surveys = [
        *DOCUMENTS.values(),
        survey(),
        replace(survey(), strata=(_region(),), consent={"en": "Please."}),
        *INSTRUCTED,
        *ANCHORED,
    ]
    surveys += [
        replace(survey(), token=rule)
        for rule in (TokenRule("invite"), TokenRule("rsa-pss", "A" * 64))
    ]
    surveys += SOURCES_OF_KINDS
    surveys += [*PERMUTED, *reports.documents(17, 30)]
    # Documents whose explanation is compared with the law of their reports.
    surveys += [Told.of(seed).document for seed in range(60)]
    surveys += [made().document for made in ONE_SIDED]
    surveys += [
        asked(),
        asked(*SIGNS_ALWAYS),
        asked(AGE),
        survey(form(AGE), replace(form(*DRUGS), id="b")),
    ]
    surveys += [survey(form_block(form)) for form in (*FORMS, LARGE_FORMS["joint answers"])]
    surveys.append(survey(*(form_block(form, f"f{i}") for i, form in enumerate(FORMS[:5]))))
    keys = ("0123456789abcdef" * 4,)
    payloads = [document.payload().decode() for document in surveys]
    for delta_cap, preview in (("0", False), ("0.03", True)):
        policy = Policy(delta_cap=delta_cap)
        request = {"payloads": payloads, "keys": keys, "deltaCap": delta_cap, "preview": preview}
        for document, explanation in zip(surveys, page.evaluate(EXPLAIN, request), strict=True):
            level = policy.level(document)
            budget = policy.budget(document, level, [], is_answered=False) if preview else None
            assert explanation == str(explain(document, level, keys, None, budget))


@pytest.mark.parametrize(
    "language",
    [t if t in ("en", "ar") else pytest.param(t, marks=pytest.mark.full_only) for t in EXPLAINED],
)
def test_arms_are_explained_in_the_same_words(page: Page, language: str) -> None:
    body = json.loads(armed().payload()) | {"languages": [language]}
    document = SurveyDocument.parse(canonical.dumps(_spoken(body, language)))
    payload, keys, policy = document.payload().decode(), ("0123456789abcdef" * 4,), Policy()
    views = document.views
    request = {
        "payloads": [payload] * len(views),
        "arms": list(views),
        "keys": keys,
        "language": language,
    }
    expected = [str(explain(view, policy.level(view), keys, language)) for view in views.values()]
    assert page.evaluate(EXPLAIN, request) == expected
    assert len(set(expected)) == len(views)


def _spoken(value: Any, language: str) -> Any:
    """Return a document whose English texts are texts in another language."""
    if isinstance(value, list):
        return [_spoken(one, language) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"en"}:
        return {language: value["en"]}
    return {name: _spoken(one, language) for name, one in value.items()}


@pytest.mark.parametrize(
    "language",
    [
        tag if tag in ("ar", "pl") else pytest.param(tag, marks=pytest.mark.full_only)
        for tag in EXPLAINED
        if tag != "en"
    ],
)
def test_surveys_are_explained_in_the_same_words_in_every_language(
    page: Page, language: str
) -> None:
    """The documents cover every mechanism kind, public questions, items, anchors, tokens, forms and budgets."""
    surveys = [
        replace(survey(), strata=(_region(),), consent={"en": "Please {ratio}."}),
        replace(survey(), token=TokenRule("invite")),
        replace(survey(), token=TokenRule("rsa-pss", "A" * 64)),
        *SOURCES_OF_KINDS,
        *PERMUTED,
        *INSTRUCTED,
        *ANCHORED,
        *(Told.of(seed).document for seed in range(24)),
        *(made().document for made in ONE_SIDED),
        asked(*SIGNS_ALWAYS),
        survey(form(AGE), replace(form(*DRUGS), id="b")),
        *(survey(form_block(form)) for form in FORMS[:4]),
    ]
    payloads = [
        document.payload().decode().replace('"en"', f'"{language}"') for document in surveys
    ]
    policy = Policy(delta_cap="0.03")
    request = {"payloads": payloads, "keys": ["ab" * 32], "deltaCap": "0.03", "preview": True,
               "language": language}  # fmt: skip
    for payload, explanation in zip(payloads, page.evaluate(EXPLAIN, request), strict=True):
        document = SurveyDocument.parse(payload.encode())
        level = policy.level(document)
        budget = policy.budget(document, level, [], is_answered=False)
        python = explain(document, level, ("ab" * 32,), language, budget)
        assert explanation == str(python)
        assert python.language == language


OWN_TEXTS = """async ({payload, cases}) => {
  const names = ["canonical", "documents", "explain", "levels", "texts"];
  const [canonical, documents, {explain}, {reportLevel}, {describe}] =
    await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
  const bytes = canonical.bytesOf(payload), survey = await documents.readSurvey(bytes, await canonical.digestOf(bytes));
  const level = reportLevel(survey);
  return cases.map((own) => {
    try {
      return String(explain(survey, level, [], "en", undefined, own));
    } catch (error) {
      return [error.code, describe(error)];
    }
  });
}"""


def test_own_texts_are_used_and_refused_as_in_python(page: Page) -> None:
    document = payable_survey()
    good: Any = {"explanation": {"limits": "Ours."}, "whole": {"cost": "{nats} nats."}}
    cases = [good, *(own for own, _, _ in BAD_TEXTS)]
    said = page.evaluate(OWN_TEXTS, {"payload": document.payload().decode(), "cases": cases})
    assert said[0] == str(explain(document, document.report_level, (), texts=good))
    for own, answer in zip(cases[1:], said[1:], strict=True):
        with pytest.raises(InvalidInput) as caught:
            explain(document, document.report_level, (), texts=own)
        assert answer == [caught.value.code, str(caught.value)]


UNICODE = """(languages) => languages.map((language) => {
  const rules = new Intl.PluralRules(language), format = new Intl.NumberFormat(`${language}-u-nu-latn`);
  const decimal = format.formatToParts(1.5).find(({type}) => type === "decimal").value;
  return [Array.from({length: 1200}, (_, n) => rules.select(n)), decimal];
})"""


def test_plural_forms_and_decimal_signs_equal_those_of_unicode(page: Page) -> None:
    for language, (forms, decimal) in zip(
        EXPLAINED, page.evaluate(UNICODE, EXPLAINED), strict=True
    ):
        assert [plural(language, n) for n in range(1200)] == forms, language
        assert Texts(language, "explanation").figure("1.5") == f"1{decimal}5"


def _permuted(answers: int, shift: int) -> SurveyDocument:
    """Return a survey whose mechanism always reports the answer's index, shifted cyclically."""
    rows = tuple(
        tuple(16 * (y == (x + shift) % answers) for y in range(answers)) for x in range(answers)
    )
    questions = (question("q", *(f"c{x}" for x in range(answers))),)
    promise = Promise(Claim("dp", (2, 1), delta=(1, 2)))
    block = Block(
        "q", questions, DenseMechanism(4, rows), (promise,), (1,) * answers, None, "permuted", None
    )
    return survey(block)


PERMUTED = [_permuted(3, 1), _permuted(9, 1), _permuted(3, 0)]


def test_a_permuted_identity_is_explained_as_sent_unchanged(page: Page) -> None:
    """This holds for every permutation of the symbols and every table size."""
    request = {"payloads": [document.payload().decode() for document in PERMUTED], "keys": ["ab"]}
    for explanation in page.evaluate(EXPLAIN, request):
        assert "Your answer to this is sent unchanged" in explanation
        assert "symbols" not in explanation


def _region() -> Question:
    return question("region", "north", "south")


_ASKED = ldp_block().questions[0]
_SOURCES = ("Census of {question} (2021)", "$& $1 $'")
ANCHORED = [
    survey(
        replace(ldp_block(), questions=(replace(_ASKED, anchor=Anchor((3, 1), _SOURCES[0])),)),
        form(
            AGE,
            *DRUGS,
            replace(question("born", "early", "late"), anchor=Anchor((1, 0), _SOURCES[1])),
            replace(question("{source}", "no", "yes"), anchor=Anchor(repeats="affair"), id="again"),
        ),
    )
]
_ALONE = replace(survey(ldp_block()), instructed=CHECK)
_MIXED = present(SOURCED.token)
SOURCES_OF_KINDS = [
    replace(SOURCED, token=replace(_MIXED, rules=dict.fromkeys(_MIXED.rules, rule)))
    for rule in (_MIXED.rules["list"], _MIXED.rules["panel"])
] + [SOURCED]
"""Invites of all sources, blind tokens of all, and of some."""
INSTRUCTED = [_ALONE, replace(_ALONE, strata=(_region(),), token=TokenRule("invite"))]
