# SPDX-License-Identifier: Apache-2.0
"""Priors with counts for each stratum: strict parsing, designs within every stratum, and the
report's level."""

import copy
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from frankly_protocol.audit import exp_lower
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_sdk import Policy
from frankly_server.services import Services
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.devices import expected_form, warnings_of
from frankly_server.surveys.drafting import draft_blocks
from frankly_server.surveys.published import promised
from frankly_server.surveys.yaml import read_yaml

from tests.narrowing import dense_of, present
from tests.refusals import refusal


def question(name: str, *choices: str) -> dict[str, Any]:
    return {
        "id": name,
        "text": {"en": name},
        "choices": [{"id": c, "label": {"en": c}} for c in choices],
    }


EQUAL = [["25", "25"], ["25", "25"]]
SAME, OTHER = [["40", "10"], ["10", "40"]], [["10", "40"], ["40", "10"]]
"""The secret follows the answer in one region, its opposite in the other: the sum is EQUAL."""
REGION, AGE = question("region", "north", "south"), question("age", "young", "middle", "old")


def survey(prior: dict[str, Any], *strata: dict[str, Any], **more: Any) -> dict[str, Any]:
    block = {"id": "b", "questions": [question("x", "zero", "one")], "notion": "lip", "epsilon": "0.5",
             "prior": {"secret": "hiv", "secrets": ["no", "yes"], "source": "a table", **prior}, **more}  # fmt: skip
    return {"name": "form", "title": {"en": "Form"}, "languages": ["en"], "min_reports": 2, "budget": "5",
            "strata": list(strata), "blocks": [block]}  # fmt: skip


def by(*tables: tuple[dict[str, str], list[list[str]]]) -> dict[str, Any]:
    return {"strata": [{"when": when, "joint": joint} for when, joint in tables]}


NORTH, SOUTH = {"region": "north"}, {"region": "south"}
XOR = by((NORTH, SAME), (SOUTH, OTHER))


def publish(services: Services, value: dict[str, Any]) -> SurveyDocument:
    services.surveys.apply(parse_value(value))
    services.surveys.publish("form")
    return services.surveys.versions("form")[-1]


STRATA = "blocks[0].prior.strata"
NO_ANSWER_0 = [["0", "40"], ["0", "10"]]
"""Counts in which answer 0 never occurs."""

# Name -> (prior, public questions, field, part of the detail)
BAD: dict[str, tuple[dict[str, Any], list[Any], str, str]] = {
    "one is missing": (by((NORTH, SAME)), [REGION], STRATA, "no counts for region south"),
    "one of two questions": (by((NORTH, SAME)), [REGION, AGE], STRATA + "[0].when", "region, age"),
    "many are missing": (
        by(({**NORTH, "age": "old"}, SAME)), [REGION, AGE], STRATA,
        "region north, age young; region north, age middle; region south, age young; and 2 more",
    ),
    "counted twice": (by((NORTH, SAME), (NORTH, SAME), (SOUTH, SAME)), [REGION], STRATA + "[1].when", "twice"),
    "an unknown choice": (
        by((NORTH, SAME), ({"region": "east"}, SAME)), [REGION], STRATA + "[1].when.region", "north, south",
    ),
    "an unknown question": (by(({"town": "north"}, SAME)), [REGION], STRATA + "[0].when", "region"),
    "no public question": (XOR, [], STRATA, "give the counts of all people as joint"),
    "both": ({**XOR, "joint": SAME}, [REGION], "blocks[0].prior", "either as joint"),
    "neither": ({}, [REGION], "blocks[0].prior", "either as joint"),
    "shares": (by((NORTH, [["0.5", "0"], ["0", "0.5"]]), (SOUTH, OTHER)), [REGION], "blocks[0].prior", "whole numbers"),
    "rows": (by((NORTH, SAME), (SOUTH, SAME[:1])), [REGION], "blocks[0].prior", "same number of rows"),
    "columns": (by((NORTH, SAME), (SOUTH, [["1"], ["2"]])), [REGION], "blocks[0]", "region south, has 1 columns"),
    "too many people": (
        by(*[(w, [["9" * 15] * 2] * 2) for w in (NORTH, SOUTH, NORTH)]), [REGION], "blocks[0].prior", "2^53",
    ),
    "small": (
        by((NORTH, SAME), (SOUTH, [["4", "40"], ["40", "10"]])), [REGION], STRATA + "[1].joint[0][0]", "individual",
    ),
    "nobody": (by((NORTH, SAME), (SOUTH, [["0", "0"], ["0", "0"]])), [REGION], STRATA + "[1].joint", "sums to 0"),
    "an answer nobody gives there": (
        by((NORTH, SAME), (SOUTH, NO_ANSWER_0)), [REGION], STRATA + "[1].joint", "answer 0",
    ),
    "an answer nobody gives": (
        by((NORTH, NO_ANSWER_0), (SOUTH, NO_ANSWER_0)), [REGION], STRATA,
        "answer 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors_name_their_stratum(name: str) -> None:
    prior, strata, field, detail = BAD[name]
    with pytest.raises(InvalidInput) as refused:
        expected_form(parse_value(survey(prior, *strata)))
    assert refused.value.field == field
    assert detail in refused.value.detail


def test_strata_are_ordered_as_in_the_document() -> None:
    every = [
        {"region": r, "age": a} for r, a in product(("north", "south"), ("young", "middle", "old"))
    ]
    tables = [(when, [[str(10 + i), "20"], ["30", "40"]]) for i, when in enumerate(every)]
    mixed = [
        ({"age": when["age"], "region": when["region"]}, joint) for when, joint in reversed(tables)
    ]
    definition = parse_value(survey(by(*mixed), REGION, AGE))
    assert definition == parse_value(survey(by(*tables), REGION, AGE))
    assert definition.blocks[0].prior is not None
    assert [table[0][0] for table in definition.blocks[0].prior.tables] == [
        "10",
        "11",
        "12",
        "13",
        "14",
        "15",
    ]
    assert SurveyDefinition.from_json(definition.to_json()) == definition
    assert parse_value(read_yaml(definition.to_yaml())) == definition


def lift_within(document: SurveyDocument, z: int) -> Fraction:
    """Return the largest P(y|s,z)/P(y|z) or its inverse, by definition, from the published numbers."""
    (block,) = document.blocks
    (prior,) = [promise.prior for promise in block.promises if promise.prior]
    joint = prior.tables[z]
    rows = [
        [Fraction(w, sum(row)) for w in row] for row in dense_of(block.numbered_mechanism).weights
    ]
    everybody = sum(map(sum, joint))
    worst = Fraction(1)
    for y in range(len(rows[0])):
        total = (
            sum((n * rows[x][y] for row in joint for x, n in enumerate(row)), Fraction(0))
            / everybody
        )
        for row in joint:
            chance = sum((n * rows[x][y] for x, n in enumerate(row)), Fraction(0)) / sum(row)
            if total:
                worst = max(worst, chance / total, total / chance if chance else Fraction(10**9))
    return worst


@pytest.mark.parametrize("cap", [None, "3"])
def test_the_level_holds_within_every_stratum(services: Services, cap: str | None) -> None:
    document = publish(services, survey(XOR, REGION, **({"ceiling_cap": cap} if cap else {})))
    (prior,) = [promise.prior for promise in document.blocks[0].promises if promise.prior]
    assert prior.tables == (((40, 10), (10, 40)), ((10, 40), (40, 10)))
    assert document.blocks[0].design_prior == (100, 100)
    secret = document.report_level.secrets["hiv"]
    for z in (0, 1):
        assert secret.level is not None
        assert (
            Fraction(14, 10)
            < lift_within(document, z)
            <= secret.level
            <= exp_lower(Fraction("0.5"))
        )
    assert (secret.odds, secret.strata_lift, secret.strata_odds) == (
        present(secret.level) ** 2,
        1,
        1,
    )
    assert promised(document)[0].epsilon == "0.5000"


def test_pooled_counts_would_allow_unchanged_answers() -> None:
    """Under the pooled table, answers would be sent unchanged and reveal the secret at odds of 4 to 1."""
    value = survey({"joint": [["50", "50"], ["50", "50"]]}, accept_identity=True)
    (drafted,) = draft_blocks(parse_value(value))
    assert drafted.block.mechanism.sends_unchanged


VOID = {
    "no ceiling": ({}, "set ceiling_cap"),
    "a ceiling over the cap": ({"ceiling_cap": "5.01"}, "not within 5 nats"),
    "unchanged answers": ({"accept_identity": "true"}, "strata"),
}


@pytest.mark.parametrize("name", VOID)
def test_a_promise_that_public_answers_void_is_refused(services: Services, name: str) -> None:
    void_fields, detail = VOID[name]
    definition = parse_value(survey({"joint": EQUAL}, REGION, **void_fields))
    for dry_run in (True, False):
        error = refusal(InvalidInput, services.surveys.apply, definition, dry_run=dry_run)
        assert (error.code, error.field) == ("unsupported", "blocks[0].prior")
        assert detail in error.detail


def test_with_a_ceiling_it_is_accepted_and_only_the_ceiling_is_stated(services: Services) -> None:
    value = survey({"joint": EQUAL}, REGION, ceiling_cap="2", mechanism="grr")
    document = publish(services, value)
    secret, ceiling = document.report_level.secrets["hiv"], document.blocks[0].ceiling
    assert secret.level == secret.odds == ceiling is not None
    assert (secret.counted, secret.strata_odds) == (None, None)
    assert promised(document)[0].epsilon == "inf"  # displayed as "no finite level"
    for warnings_of_form in (warnings_of(document), warnings_of(expected_form(parse_value(value)))):
        assert [
            ("only the ceiling" in line, "prior.strata" in line) for line in warnings_of_form
        ] == [(True, True)]
    assert Policy().check(document, Policy().level(document), pinned=True, spent=[]).odds == ceiling
    tight = copy.deepcopy(value) | {"budget": "1.9"}
    error = refusal(InvalidInput, services.surveys.apply, parse_value(tight))
    assert error.code == "budget_exceeded"


def test_robust_ldp_has_no_counts_by_stratum() -> None:
    pairs = survey(by((NORTH, SAME), (SOUTH, OTHER)), REGION, ceiling_cap="3")
    pairs["blocks"][0] |= {"notion": "rldp", "robust": {"order": "2", "n": "100", "beta": "0.05"},
                           "questions": [question("hiv", "no", "yes"), question("x", "zero", "one")]}  # fmt: skip
    error = refusal(InvalidInput, expected_form, parse_value(pairs))
    assert (error.code, error.field) == ("unsupported", STRATA)
    pooled = copy.deepcopy(pairs)
    pooled["blocks"][0]["prior"] = {
        k: v for k, v in pairs["blocks"][0]["prior"].items() if k != "strata"
    } | {"joint": EQUAL}
    (warning,) = warnings_of(expected_form(parse_value(pooled)))
    assert "only the ceiling of 3.0000 nats is stated" in warning
    assert "prior.strata" not in warning


def test_a_secret_that_does_not_occur_in_a_stratum_is_ignored_there(services: Services) -> None:
    tables = by((NORTH, [["40", "10"], ["10", "40"]]), (SOUTH, [["50", "50"], ["0", "0"]]))
    document = publish(services, survey(tables, REGION, ceiling_cap="3"))
    secret = document.report_level.secrets["hiv"]
    assert secret.level is not None
    assert lift_within(document, 0) <= secret.level
    assert secret.strata_odds is None  # a region by itself rules out a value of the secret


FAMILIES = {"grr": "lip", "optimal": "alip", "subset-selection": "secret-ldp"}


@pytest.mark.parametrize("mechanism", FAMILIES)
def test_levels_of_families_and_notions_hold_within_every_stratum(
    services: Services, mechanism: str
) -> None:
    notion = FAMILIES[mechanism]
    levels = (
        {"epsilon_low": "0.4", "epsilon_high": "0.5"} if notion == "alip" else {"epsilon": "0.5"}
    )
    value = survey(XOR, REGION, mechanism=mechanism, ceiling_cap="3")
    del value["blocks"][0]["epsilon"]
    value["blocks"][0] |= {"notion": notion, **levels}
    # `draft_document` verifies every claim within every stratum.
    document = publish(services, value)
    promise = document.blocks[0].promises[0]
    assert len(promise.claims) == 2
    assert document.report_level.secrets["hiv"].counted == "b"


def test_levels_that_a_family_determines_hold_in_the_worst_stratum(services: Services) -> None:
    value = survey(
        by((NORTH, SAME), (SOUTH, [["30", "20"], ["20", "30"]])),
        REGION,
        mechanism="warner",
        p00="0.8",
    )
    del value["blocks"][0]["epsilon"]
    value["blocks"][0]["notion"] = "alip"  # without levels, which the mechanism determines
    document = publish(services, value)
    claim = document.blocks[0].promises[0].claim
    assert claim.level is not None
    assert claim.low_level is not None
    worst = max(Fraction(*claim.level), Fraction(*claim.low_level))
    stated_level = lift_within(document, 0)
    assert (
        lift_within(document, 1) < stated_level <= worst <= stated_level * (1 + Fraction(1, 2**40))
    )
    assert document.report_level.secrets["hiv"].level == worst
