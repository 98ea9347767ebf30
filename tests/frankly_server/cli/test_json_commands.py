# SPDX-License-Identifier: Apache-2.0
"""Machine interface of spec 1.9: one JSON object in, and one JSON object out or a problem object
with its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from frankly_design.requests.plan import plan_json
from frankly_design.requests.split import split_json
from frankly_protocol.canonical import parse_json

from tests.contract.cases import CASES
from tests.frankly_design.requests.test_verify import ASKED as VERIFIED
from tests.frankly_server.cli.conftest import Frankly
from tests.frankly_server.web.test_plan_route import SPLIT, asked_of

WARNER = {"prior": {"joint": [[1, 1]]}, "notion": "ldp", "epsilon": "1", "mechanism": "warner"}
KEYS = set(
    "kind bits weights matrix information information_bound normalised_information variance gap certified rank "
    "identifiable measures parameters seconds".split()
)
WEIGHTS = [[12, 4], [4, 12]]


def test_design_measure_and_estimate_fit_together(frankly: Frankly) -> None:
    designed = frankly("design", "--json", stdin=json.dumps(WARNER))
    assert (designed.code, designed.err) == (0, "")
    design = designed.json
    assert set(design) >= KEYS
    assert {sum(row) for row in design["weights"]} == {2 ** design["bits"]}
    measured = frankly(
        "measure",
        "--json",
        stdin=json.dumps({"prior": WARNER["prior"], "weights": design["weights"]}),
    ).json
    assert measured["answer_ldp"] == pytest.approx(1, abs=1e-9)
    assert measured["answer_ldp"] <= 1
    counts = {"weights": design["weights"], "bits": design["bits"], "counts": [600, 400]}
    estimated = frankly("estimate", "--json", stdin=json.dumps(counts)).json
    assert estimated["n"] == 1000
    assert sum(estimated["unbiased"]) == pytest.approx(1)


def test_two_arms_are_planned(frankly: Frankly) -> None:
    text = json.dumps(SPLIT)
    expected = split_json(parse_json(text.encode(), decimals=True), lambda: 0.0)
    assert frankly("plan", "--split", "--json", stdin=text).json == json.loads(json.dumps(expected))
    shown = frankly("plan", "--split", stdin=text)
    assert (shown.code, shown.err) == (0, "")
    assert str(expected["n"]) in shown.out
    assert "per_arm" in shown.out
    refused = frankly("plan", "--json", stdin=text)
    assert (refused.code, json.loads(refused.err)["field"]) == (3, "arms")


@pytest.mark.parametrize("name", CASES)
def test_every_mechanism_can_be_planned(name: str, frankly: Frankly) -> None:
    request_text = json.dumps({**asked_of(name), "solve_for": "margin", "n": 1000})
    planned = frankly("plan", "--json", stdin=request_text)
    if planned.code:  # merged answers make shares unidentifiable from any number of reports
        assert (planned.code, json.loads(planned.err)["code"]) == (3, "not_identifiable")
        assert not json.loads(frankly("design", "--json", stdin=json.dumps(asked_of(name))).out)[
            "identifiable"
        ]
    else:
        expected = plan_json(parse_json(request_text.encode(), decimals=True), lambda: 0.0)
        assert planned.json == json.loads(json.dumps(expected))


def test_decimals_are_read_exactly(frankly: Frankly) -> None:
    tenths = '{"prior":{"joint":[[0.1,0.2,0.7]]},"notion":"ldp","epsilon":"1"}'
    assert frankly("design", "--json", stdin=tenths).code == 0


def test_without_json_it_is_a_table_for_people(frankly: Frankly) -> None:
    result = frankly(
        "measure", stdin=json.dumps({"prior": {"joint": [[1, 1]]}, "weights": WEIGHTS})
    )
    assert result.code == 0
    assert "answer_ldp" in result.out
    assert not result.out.startswith("{")


def test_the_input_may_be_a_file(frankly: Frankly, tmp_path: Path) -> None:
    text = json.dumps({"prior": {"joint": [[1, 1]]}, "weights": WEIGHTS})
    (tmp_path / "asked.json").write_text(text)
    from_file = frankly("measure", tmp_path / "asked.json", "--json")
    assert from_file == frankly("measure", "--json", stdin=text)
    assert from_file == frankly("measure", "-", "--json", stdin=text)
    missing = frankly("measure", tmp_path / "other.json", "--json")
    assert (missing.code, missing.problem["code"]) == (2, "usage")
    assert "other.json" in missing.problem["detail"]


# Name -> (verb, stdin, exit code, problem, field)
REFUSED: dict[str, tuple[str, Any, int, str, str | None]] = {
    "nothing": ("design", "", 3, "json_invalid", None),
    "no JSON": ("design", "{", 3, "json_invalid", None),
    "a list": ("measure", [], 3, "json_invalid", None),
    "duplicate keys": ("estimate", '{"bits":4,"bits":4}', 3, "json_invalid", None),
    "100,000 levels": ("design", "[" * 100_000, 3, "json_invalid", None),
    "not UTF-8": ("design", "\udcff", 3, "json_invalid", None),
    "NaN as ε": ("design", '{"prior":{"joint":[[1,1]]},"notion":"ldp","epsilon":NaN}', 3, "number_not_finite", None),
    "NaN as text": ("design", WARNER | {"epsilon": "nan"}, 3, "eps_not_finite", "epsilon"),
    "ε of 50": ("design", WARNER | {"epsilon": "50"}, 3, "eps_out_of_range", "epsilon"),
    "ε as number": ("design", WARNER | {"epsilon": True}, 3, "eps_format", "epsilon"),
    "an unknown field": ("design", WARNER | {"epsilom": "1"}, 3, "field_unknown", "epsilom"),
    "a missing field": ("design", {"notion": "ldp", "epsilon": "1"}, 3, "field_missing", "prior"),
    "a prior of 1.3": ("design", WARNER | {"prior": {"joint": [[0.5, 0.8]]}}, 3, "prior_sum", "prior.joint"),
    "answers unchanged": ("design", {"prior": {"joint": [[1, 1], [1, 1]]}, "notion": "lip", "epsilon": "1",
                          "accept_identity": False}, 4,
                          "identity_mechanism", None),
    "a level in percent": ("estimate", {"weights": WEIGHTS, "bits": 4, "counts": [6, 4], "level": 95}, 3,
                           "confidence_range", "level"),
    "rows of unequal sums": ("measure", {"prior": {"joint": [[1, 1]]}, "weights": [[1, 2], [2, 2]]}, 3,
                             "weights_invalid", "weights[1]"),
    "invalid weights": ("estimate", {"weights": [[1, 2], [2, 2]], "bits": 4, "counts": [1, 1]}, 3,
                                      "weights_invalid", None),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_problem_objects(frankly: Frankly, name: str) -> None:
    verb, value, code, problem, field = REFUSED[name]
    text = value if isinstance(value, str) else json.dumps(value)
    result = frankly(verb, "--json", stdin=text)
    assert (result.code, result.out) == (code, ""), result.err
    assert set(result.problem) == {"type", "title", "status", "code", "detail", "field"}
    assert result.problem["code"] == problem
    if field is not None:
        assert result.problem["field"] == field


def test_the_interface_of_a_real_process() -> None:
    command = [sys.executable, "-m", "frankly_server.cli", "measure", "--json"]
    request_text = json.dumps({"prior": {"joint": [[1, 1]]}, "weights": WEIGHTS})
    result = subprocess.run(
        command, input=request_text, capture_output=True, text=True, check=False, env=os.environ
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["answer_ldp"] == pytest.approx(1.0986122886681098)


def test_design_and_plan_say_what_a_skewed_prior_costs(frankly: Frankly) -> None:
    request = {"prior": {"joint": [[900, 20, 20, 20, 20, 20]]}, "notion": "ldp", "epsilon": "2"}
    planned = request | {"solve_for": "margin", "n": 500}
    regret = frankly("design", "--json", stdin=json.dumps(request)).json["regret"]
    assert (regret["at"], regret["against"]) == ("equal shares", "subset-selection")
    assert frankly("plan", "--json", stdin=json.dumps(planned)).json["regret"] == regret
    extra_percent = round(100 * (float(regret["ratio"]) - 1))
    for command, body in (("design", request), ("plan", planned)):
        output = " ".join(frankly(command, stdin=json.dumps(body)).out.split())
        assert f"this needs {extra_percent}% more reports than subset-selection." in output
    even = request | {"prior": {"joint": [[1] * 6]}}
    assert frankly("design", "--json", stdin=json.dumps(even)).json["regret"] is None
    assert "Note:" not in frankly("design", stdin=json.dumps(even)).out
    plan_request = {"weights": WEIGHTS, "bits": 4, "solve_for": "margin", "n": 500}
    assert frankly("plan", "--json", stdin=json.dumps(plan_request)).json["regret"] is None


def test_a_plan_for_plausible_truths_uses_the_prior_of_their_decoder(frankly: Frankly) -> None:
    counts = [700, 175, 78, 44, 28, 19, 14, 11]
    request = {"prior": {"joint": [counts]}, "notion": "ldp", "epsilon": "2"}
    request["truths"] = {"around": "prior", "radius": "0.2"}
    design = frankly("design", "--json", stdin=json.dumps(request)).json
    planned = frankly(
        "plan", "--json", stdin=json.dumps(request | {"solve_for": "margin", "n": 500})
    ).json
    plan_request = {key: design[key] for key in ("kind", "bits", "weights")} | {
        "solve_for": "margin",
        "n": 500,
    }
    margins = [
        frankly("plan", "--json", stdin=json.dumps(plan_request | {"design_prior": prior})).json[
            "margins"
        ]
        for prior in (design["parameters"]["decoder_prior"], counts)
    ]
    assert margins[0] == planned["margins"] != margins[1]


def test_the_command_accepts_and_refuses(frankly: Frankly) -> None:
    result = frankly("verify", "--json", stdin=json.dumps(VERIFIED[1]))
    assert (result.code, result.json["holds"], result.json["level_needed"]) == (0, False, [4, 1])
    refused = frankly("verify", "--json", stdin=json.dumps({**VERIFIED[0], "notion": "magic"}))
    assert refused.code == 3
