# SPDX-License-Identifier: Apache-2.0
"""Page docs/design.md: its examples, figures, Python code and bad inputs; and the command of docs/first_survey.md."""

import json
import re
import subprocess
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frankly_design.requests.design import design_json
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.cli.exits import exit_code
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
FILES = sorted((ROOT / "docs" / "examples" / "design").glob("*.json"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def rows_after(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without the two header lines."""
    below = GUIDE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in below.splitlines() if line.startswith("|")]
    return [
        [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines[2:]
    ]


def design(request: Json) -> Json:
    return design_json(parse_json(json.dumps(request).encode(), decimals=True), time.monotonic)


def answered(file: Path) -> tuple[Json, Json]:
    data = file.read_bytes()
    return json.loads(data), design_json(parse_json(data, decimals=True), time.monotonic)


def shares(request: Json, answers: int) -> Floats:
    """Return P(x), computed from the request alone; for rldp the answers are all pairs."""
    joint = np.array(request["prior"]["joint"], dtype=np.float64)
    p = joint.sum(axis=0) if joint.shape[1] == answers else joint.ravel()
    return np.asarray(p / p.sum(), dtype=np.float64)


def objective_of(request: Json, Q: Floats, p: Floats, decoder_prior: Floats) -> float:
    """Return the objective, computed from its definition; the rows of Q are the true answers."""
    expected = p @ Q
    if request.get("objective") == "information":
        ratio = np.where(Q > 0, Q / expected, 1.0)
        return float(np.sum(p[:, None] * Q * np.log(ratio)))
    if request.get("objective") == "hamming":
        return float(1 - np.sum(np.max(p[:, None] * Q, axis=0)))
    W = np.array(request["targets"], dtype=np.float64) if "targets" in request else np.eye(len(p))
    if "truths" in request:
        return largest_in_ball(Q, p, float(request["truths"]["radius"]), decoder_prior)
    covariance = np.linalg.inv((Q / expected) @ Q.T) - np.outer(p, p)
    variances = np.diag(W @ covariance @ W.T)
    return float(np.max(variances) if request.get("criterion") == "worst" else np.sum(variances))


def largest_in_ball(Q: Floats, p: Floats, radius: float, decoder_prior: Floats) -> float:
    """Maximise c·q − |q|² over q ≥ (1−r)p, Σq = 1, with the multiplier μ: q_x = max((1−r)p_x,
    (c_x − μ)/2)."""
    weighted = Q / (decoder_prior @ Q)
    c = Q @ np.sum(np.linalg.solve(weighted @ Q.T, weighted) ** 2, axis=0)
    low, high = float(c.min()) - 2, float(c.max())
    for _ in range(200):
        middle = (low + high) / 2
        q = np.maximum((1 - radius) * p, (c - middle) / 2)
        low, high = (middle, high) if q.sum() > 1 else (low, middle)
    return float(c @ q - q @ q)


def requested_claims(request: Json, answer: Json) -> list[Claim]:
    """Build the claims of a request; only the bounds of rldp come from the response."""
    promised = []
    joints = [entry["joint"] for entry in [request["prior"], *request.get("priors", [])]]
    for notion in request.get("notions", [request]):
        name, epsilon = notion["notion"], notion.get("epsilon")
        level = level_for(Fraction(epsilon)) if epsilon else None
        if name == "metric-ldp":
            rows = notion["epsilons"]
            levels = tuple(tuple(e and level_for(Fraction(e)) for e in row) for row in rows)
            promised.append(Claim(name, (1, 1), levels=levels))
            continue
        if name in ("ldp", "rldp"):
            body = answer["parameters"]["claims"][0]
            bounds = (
                tuple(tuple(map(tuple, row)) for row in body["lower_bounds"])
                if name == "rldp"
                else None
            )
            promised.append(
                Claim(name, level, lower_bounds=bounds, diagonal=notion.get("diagonal", False))
            )
            continue
        for joint in (tuple(map(tuple, rows)) for rows in joints):
            if name == "alip":
                low, high = (notion[f"epsilon_{side}"] for side in ("low", "high"))
                E_low, E_high = (
                    level_for(Fraction(side)) if side else None for side in (low, high)
                )
                promised.append(Claim(name, E_high, joint, low_level=E_low))
            elif name in ("pml", "pmc"):
                E_high, E_low = (level, None) if name == "pml" else (None, level)
                promised.append(Claim("alip", E_high, joint, low_level=E_low))
            elif name == "dpv":
                bound = Fraction(notion["dpv"]).as_integer_ratio()
                promised.append(Claim(name, bound, joint, sensitive=notion["sensitive"]))
            else:
                attributes = tuple(notion["attributes"]) if name == "srlip" else None
                promised.append(Claim(name, level, joint, attributes=attributes))
    cap = (
        [Claim("ldp", level_for(Fraction(request["ceiling_cap"])))]
        if "ceiling_cap" in request
        else []
    )
    return promised + cap


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_examples_are_certified_and_keep_what_they_promise(file: Path) -> None:
    request, answer = answered(file)
    mechanism = DenseMechanism(answer["bits"], tuple(map(tuple, answer["weights"])))
    require_private(mechanism, *requested_claims(request, answer))
    assert answer["identifiable"] is True
    assert answer["certified"] is ("mechanism" not in request)  # an explicit family has no bound
    Q = np.array(answer["weights"], dtype=np.float64) / 2.0 ** answer["bits"]
    p = shares(request, len(Q))
    value = objective_of(
        request, Q, p, np.array(answer["parameters"].get("decoder_prior", p), dtype=np.float64)
    )
    assert answer["parameters"]["value"] == pytest.approx(value, rel=1e-9)
    assert answer["variance"] <= request.get("variance_cap", np.inf) * (1 + 1e-9)


def test_the_guide_lists_every_example_with_its_value() -> None:
    examples = {
        re.findall(r"\[(\S+)\.json\]\((\S+)\)", row[0])[0]: row for row in rows_after("Examples")
    }
    assert {name for name, _ in examples} == {file.stem for file in FILES}
    for (name, link), (_, _, objective, printed) in examples.items():
        _, answer = answered(ROOT / "docs" / link)
        assert Path(link).stem == name
        assert answer["parameters"]["objective"] == objective
        assert answer["parameters"]["value"] == pytest.approx(float(printed), rel=1e-4), name


def test_the_guide_names_every_key() -> None:
    requests = [json.loads(file.read_bytes()) for file in FILES]
    request = {row[0].strip("`") for row in rows_after("The request")}
    keys = {
        key
        for example in requests
        for entry in [example, *example.get("notions", [])]
        for key in entry
    }
    # The error for an unknown key lists the known keys
    with pytest.raises(InvalidInput) as caught:
        design({**requests[0], "nothing": 1})
    listed = set(caught.value.detail.removeprefix("the fields are ").split(", "))
    assert {key for entry in request for key in entry.split("`, `")} == listed
    assert keys <= listed
    example_answer = answered(ROOT / "docs" / "examples" / "design" / "frontier.json")[1]
    answer = {key for row in rows_after("The response") for key in row[0].strip("`").split("`, `")}
    seconds = {"seconds"}  # only the command line, which has a clock, adds the time
    nested = {f"parameters.{key}" for key in example_answer["parameters"]}
    assert answer == set(example_answer) - {"parameters"} | nested | seconds


def test_the_displayed_response_is_the_actual_response() -> None:
    printed, answer = json.loads(blocks("json")[1]), design(json.loads(blocks("json")[0]))
    assert set(printed) == set(answer) - {"weights", "matrix", "measures", "parameters"}
    for key, value in printed.items():
        assert answer[key] == (
            pytest.approx(value, rel=1e-3, abs=1e-8) if isinstance(value, float) else value
        ), key


def test_the_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = blocks("python")
    exec(snippet, {})
    printed = capsys.readouterr().out.split()
    promised = re.findall(r"# prints (.*)", snippet)[0].split()
    assert printed == promised


@pytest.mark.parametrize("row", rows_after("Bad input"), ids=lambda row: row[0])
def test_bad_input_is_refused_as_the_guide_says(row: list[str]) -> None:
    change, code, field, exit_with, _ = row
    with pytest.raises(InvalidInput) as caught:
        design({**json.loads(blocks("json")[0]), **json.loads(change.strip("`"))})
    refused = (caught.value.code, caught.value.field, exit_code(caught.value))
    assert refused == (code.strip("`"), field.strip("`"), int(exit_with))


def test_the_command_of_the_first_survey(root: Path) -> None:
    page = (root / "docs" / "first_survey.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```sh\n(.*frankly design docs/.*)\n```$", page, re.MULTILINE)
    completed = subprocess.run(
        ["bash", "-euc", command], cwd=root, capture_output=True, text=True, check=True
    )
    answer = json.loads(completed.stdout)
    assert answer["certified"] is True
    assert answer["measures"]["lip"] <= 0.25
    assert answer["measures"]["ceiling"] <= 20
