# SPDX-License-Identifier: Apache-2.0
"""Equally likely answers under LDP, for which the optimum is a subset selection, returned without a table."""

import json
import math
from typing import Any

import numpy as np
import pytest
from frankly_design.optimum import solver
from frankly_design.requests.design import design_json
from frankly_protocol.mechanisms import SubsetMechanism


def designed(answers: int, epsilon: str, objective: str, **fields: Any) -> dict[str, Any]:
    request = {"prior": {"joint": [[1] * answers]}, "notion": "ldp", "epsilon": epsilon}
    return design_json({**request, "objective": objective, **fields})


@pytest.mark.parametrize("objective", ["variance", "information"])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "3"])
def test_the_table_of_few_answers_is_no_better(
    epsilon: str, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a lower limit on tables, 5 and 9 answers are solved in both ways, each with a proof."""
    for answers in (5, 9):
        table = designed(answers, epsilon, objective)
        monkeypatch.setattr(solver, "_MOST_TABLE_ANSWERS", 4)
        subsets = designed(answers, epsilon, objective)
        monkeypatch.undo()
        assert (table["kind"], subsets["kind"]) == ("dense", "subset")
        assert table["certified"]
        assert subsets["certified"]
        figure = table[objective]
        assert subsets[objective] == pytest.approx(figure, rel=2e-6)


@pytest.mark.parametrize("objective", ["variance", "information"])
@pytest.mark.parametrize("answers", [17, 64, 256])
def test_designs_of_many_answers_are_a_few_bytes(answers: int, objective: str) -> None:
    found = designed(answers, "1", objective)
    assert found["kind"] == "subset"
    assert found["certified"]
    assert len(json.dumps(found["params"])) < 100
    SubsetMechanism(**found["params"])
    E, values = math.e, []
    for k in range(1, answers):
        # The variance is from Ye and Barg 2018; the information is that of a column with k entries
        # E.
        kept = k * E / (k * E + answers - k)
        if objective == "information":
            values.append(
                -(kept * math.log(kept * answers / k))
                - (1 - kept) * math.log((1 - kept) * answers / (answers - k))
            )
        else:
            p, q = kept, k * (kept * (k - 1) + (1 - kept) * k) / (k * (answers - 1))
            rate = p / answers + q * (answers - 1) / answers
            values.append(answers * (rate * (1 - rate)) / (p - q) ** 2)
    best = int(np.argmin(values)) + 1
    assert found["params"]["size"] == best


@pytest.mark.parametrize(
    "fields",
    [
        {"criterion": "worst"},
        {"targets": [[1] + [0] * 5]},
        {"ceiling_cap": "0.9", "notion": "lip", "prior": {"joint": [[1] * 6, [2] * 6]}},
        {"prior": {"joint": [[2] + [1] * 5]}},
    ],
)
def test_asymmetric_requests_give_a_table(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ceiling below the level of LIP implies LIP, so only LDP remains."""
    monkeypatch.setattr(solver, "_MOST_TABLE_ANSWERS", 4)
    found = designed(6, "1", "variance", **fields)
    assert found["kind"] == ("subset" if "ceiling_cap" in fields else "dense")
