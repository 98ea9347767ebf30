# SPDX-License-Identifier: Apache-2.0
"""Command `frankly estimates` on the server's own machine: by name or id, without an API key or HTTP."""

import re

import pytest

from tests.frankly_server.cli.conftest import Frankly


def test_by_name_and_by_id(counted: Frankly) -> None:
    named = counted("estimates", "habits", "--census", "--json")
    assert named.code == 0
    assert (named.json["n"], len(named.json["rows"])) == (60, 5)
    assert counted("estimates", named.json["survey"], "--census", "--json").json == named.json
    output = counted("estimates", "habits").out
    assert len(re.findall(r"│ [−\d.]+% +│ [−\d.]+% +│ [−\d.]+% +│", output)) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["nothing"], 3, "survey_unknown"),
        (["draft"], 3, "survey_unknown"),
        (["habits", "--level", "95"], 3, "confidence_range"),
        (["habits", "--level", "nan"], 3, "confidence_range"),
        (["habits", "--method", "exact", "--simultaneous"], 3, "unsupported"),
        (["habits", "--denial", "1"], 3, "field_type"),
        (["habits", "--denial", "-0.1"], 3, "field_type"),
        (["habits", "--denial", "nan"], 3, "field_type"),
        (["habits", "--csv"], 2, "usage"),
        (["0" * 32, "--url", "https://surveys.example.org"], 2, "usage"),
        (["https://surveys.example.org/s/" + "0" * 32], 2, "usage"),
    ],
)
def test_refusals(counted: Frankly, arguments: list[str], code: int, problem: str) -> None:
    result = counted("estimates", *arguments, "--json")
    assert (result.code, result.problem["code"], result.out) == (code, problem, "")


def test_denial_has_a_column(counted: Frankly) -> None:
    rows = counted("estimates", "habits", "--denial", "0.2", "--json").json["rows"]
    for row in rows:
        assert row["denied_estimate"] == pytest.approx(row["estimate"] / 0.8)
        assert row["denied_high"] == pytest.approx(min(1, row["high"] / 0.8))
    shown, usual = (
        counted("estimates", "habits", *options).out for options in (("--denial", "0.2"), ())
    )
    assert "if denied" in shown
    assert "if denied" not in usual


def test_notes_of_the_estimates_are_printed(counted: Frankly) -> None:
    """The number of reports covers all days, even if only some days are requested."""
    assert "Shares are those of the people who reported" in counted("estimates", "habits").out
    result = counted("estimates", "habits", "--since", "2030-01-01")
    assert "60 reports of all days" in result.out
    assert "more needed" in result.out


def test_simultaneous_margins_by_either_name(counted: Frankly) -> None:
    spellings = [
        ("--simultaneous",),
        ("--method", "simultaneous"),
        ("--method", "simultaneous", "--simultaneous"),
    ]
    first_output, *other_outputs = [
        counted("estimates", "habits", *options, "--result").out for options in spellings
    ]
    assert other_outputs == [first_output, first_output]


def test_a_population_of_groups_is_shown_with_what_it_is(counted: Frankly) -> None:
    sizes = ("--by", "region", "--group-sizes", '{"north": 500, "south": 300}')
    found = counted("estimates", "habits", *sizes)
    assert found.code == 0
    # Everybody is from the north, so the population has no estimates yet.
    assert (
        "smokes (weighted=region): not enough reports for an estimate, 10 more needed." in found.out
    )
    assert (
        "weighted=region is the population of these groups: north 62.5%, south 37.5%." in found.out
    )
    without = counted("estimates", "habits", "--group-sizes", '{"north": 1, "south": 1}', "--json")
    assert (without.code, without.problem["code"], without.problem["field"]) == (
        3,
        "unsupported",
        "group_sizes",
    )


def test_equivalence_needs_a_comparison(counted: Frankly) -> None:
    alone = counted("estimates", "habits", "--equivalence", "0.1", "--json")
    assert (alone.code, alone.problem["code"], alone.problem["field"]) == (
        3,
        "unsupported",
        "equivalence",
    )
    found = counted(
        "estimates", "habits", "--by", "version", "--compare", "all", "--equivalence", "0.1"
    )
    assert "regards differences up to 0.1 as none" in found.out
