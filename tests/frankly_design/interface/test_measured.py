# SPDX-License-Identifier: Apache-2.0
"""`measure`: the figures of JSON for any container, and levels computed by enumeration."""

import json
import math
from fractions import Fraction
from typing import Any

import frankly_design as fd
import numpy as np
import pandas as pd
import pytest
from frankly_design.interface.measured import SAID
from frankly_design.requests.measure import MeasureRequest, finite, measure_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, SubsetMechanism, UnaryMechanism

from tests.frankly_design.interface.given import FOUR_BITS, read
from tests.refusals import refusal

PRIOR = [[1, 2, 0, 4], [3, 1, 2, 2]]
WEIGHTS = [[3, 5, 0], [6, 2, 0], [4, 4, 0], [1, 2, 5]]
MATRIX = [[0.375, 0.625, 0.0], [0.75, 0.25, 0.0], [0.5, 0.5, 0.0], [0.125, 0.25, 0.625]]
ROWS: list[tuple[str, Any, Any, dict[str, Any], dict[str, Any]]] = [
    # name, channel, prior, options in Python, request in JSON without its prior
    ("weights", WEIGHTS, PRIOR, {}, {"weights": WEIGHTS}),
    ("matrix", MATRIX, PRIOR, {}, {"matrix": MATRIX}),
    ("attributes", WEIGHTS, PRIOR, {"attributes": np.array([2, 2])}, {"weights": WEIGHTS, "attributes": [2, 2]}),
    ("sensitive", WEIGHTS, PRIOR, {"sensitive": np.int64(1)}, {"weights": WEIGHTS, "sensitive": 1}),
    ("orders", WEIGHTS, PRIOR, {"orders": (0.5, 3, "inf", np.float64(2.5))}, {"weights": WEIGHTS, "orders": [0.5, 3,
     "inf", 2.5]}),
    ("infinite order", WEIGHTS, PRIOR, {"orders": [math.inf]}, {"weights": WEIGHTS, "orders": ["inf"]}),
    ("breaches", WEIGHTS, PRIOR, {"breaches": [0.1, Fraction(1, 4)]}, {"weights": WEIGHTS, "breaches": ["0.1", 0.25]}),
    ("targets", WEIGHTS, PRIOR, {"targets": pd.DataFrame([[1, 0, 0, -1.5]])}, {"weights": WEIGHTS, "targets": [[1, 0,
     0, -1.5]]}),
    ("pairs", WEIGHTS, [[10, 10], [20, 60]], {}, {"weights": WEIGHTS}),
    ("one row", [[1, 3], [2, 2]], [[0.25, 0.75]], {}, {"weights": [[1, 3], [2, 2]]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "prior", "options", "more"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_figures_are_those_of_json(
    given: Any, prior: Any, options: dict[str, Any], more: dict[str, Any]
) -> None:
    found = fd.measure(given, prior, **options)
    assert finite(dict(found)) == measure_json(read({"prior": {"joint": prior}, **more}))
    assert len(found) == len(list(found))


def test_the_table_has_every_field_of_a_request() -> None:
    assert {name for row in ROWS for name in row[4]} | {"prior"} == set(MeasureRequest.model_fields)


EIGHTHS = [[Fraction(w, 8) for w in row] for row in WEIGHTS]


@pytest.mark.parametrize(
    "given",
    [
        tuple(map(tuple, WEIGHTS)), np.array(WEIGHTS), np.array(WEIGHTS, dtype=np.int16), pd.DataFrame(WEIGHTS),
         np.array(MATRIX),
        pd.DataFrame(MATRIX, index=range(4)), EIGHTHS, DenseMechanism(4,
         tuple(tuple(2 * w for w in row) for row in WEIGHTS)),
    ],
    ids=["tuples", "integers", "small integers", "frame", "floats", "labelled frame", "fractions", "mechanism"],
)  # fmt: skip
def test_every_container_has_the_same_figures(given: Any) -> None:
    for prior in (PRIOR, np.array(PRIOR), pd.DataFrame(PRIOR)):
        assert dict(fd.measure(given, prior)) == dict(fd.measure(WEIGHTS, PRIOR))


def test_levels_are_those_by_enumeration() -> None:
    found = fd.measure(FOUR_BITS, [[3, 1, 2], [1, 1, 4]], attributes=[3], sensitive=0)
    Q = [[Fraction(w, 16) for w in row] for row in FOUR_BITS.weights]
    joint = [[3, 1, 2], [1, 1, 4]]
    given = [
        [
            sum((Fraction(n, sum(row)) * Q[x][y] for x, n in enumerate(row)), Fraction(0))
            for y in range(4)
        ]
        for row in joint
    ]
    overall = [(a + b) / 2 for a, b in zip(*given, strict=True)]  # both secrets have 6 of 12 people
    ratios = [law[y] / overall[y] for law in given for y in range(4)]
    assert found["alip_high"] == pytest.approx(math.log(max(ratios)), rel=1e-12)
    assert found["alip_low"] == pytest.approx(-math.log(min(ratios)), rel=1e-12)
    assert found["lip"] == max(found["alip_high"], found["alip_low"]) == found["srlip"]
    between = max(max(a / b, b / a) for a, b in zip(*given, strict=True))
    assert found["secret_ldp"] == pytest.approx(math.log(between), rel=1e-12)
    worst = max(a / b for column in zip(*Q, strict=True) for a in column for b in column)
    assert found["ceiling"] == pytest.approx(float(worst), rel=1e-12)
    assert found["answer_ldp"] == pytest.approx(math.log(worst), rel=1e-12)
    assert found["dpv"] == pytest.approx(float(max(ratios[:4]) / 2), rel=1e-12)
    assert found["rank"] == 3
    for name, exact in (("answer_ldp", math.log(worst)), ("secret_ldp", math.log(between))):
        assert found[name] >= exact - 1e-15


def test_infinite_levels_are_numbers_in_python() -> None:
    found = fd.measure(np.eye(2), [[1, 2]])
    assert found["ceiling"] == found["answer_ldp"] == math.inf
    assert found["normalised_information"] == pytest.approx(1)


@pytest.mark.parametrize(
    "mechanism",
    [UnaryMechanism(4, 3, 12, 4), SubsetMechanism(4, 3, 2, 12)],
    ids=["unary", "subset"],
)
def test_sets_are_measured_like_their_channel(mechanism: Any) -> None:
    prior = [[3, 1, 2], [1, 1, 4]]
    rows = [[mechanism.probability(y, x) for y in mechanism.symbols()] for x in range(3)]
    found, table = fd.measure(mechanism, prior), fd.measure(rows, prior)
    assert set(found) == set(table)
    for name in ("lip", "secret_ldp", "answer_ldp", "ceiling", "information", "hamming", "rank"):
        assert found[name] == pytest.approx(table[name], rel=1e-12)
    assert found["variance"] >= table["variance"] - 1e-12  # decoded from the answers' counts alone
    error = refusal(InvalidInput, fd.measure, mechanism, prior, orders=[3], breaches=[0.1])
    assert (error.code, error.field) == ("unsupported", "breaches")


def test_measures_print_their_single_numbers() -> None:
    found = fd.measure(WEIGHTS, PRIOR, attributes=[2, 2], sensitive=1)
    lines, names = repr(found).splitlines(), [name for name in SAID if name in found]
    assert [line.split()[0] for line in lines] == names
    assert set(SAID) - set(names) == {"realised_epsilon"}  # over pairs alone
    for line in lines:
        name, value, said = line.split(maxsplit=2)
        assert float(value) == pytest.approx(found[name], rel=2e-5)
        assert said == SAID[name]
    series = found.to_series()
    assert series.name == "measure"
    assert dict(series) == {name: found[name] for name in names}
    assert "srlip" not in repr(fd.measure(WEIGHTS, PRIOR))
    json.dumps(finite(dict(found)))


BAD: list[tuple[str, Any, Any, dict[str, Any], str, str, str]] = [
    ("no channel", None, PRIOR, {}, "prior_shape", "matrix", "rows of numbers"),
    ("one row", [0.5, 0.5], PRIOR, {}, "weights_invalid", "matrix", "2 to 256"),
    ("empty", [], PRIOR, {}, "prior_shape", "matrix", "rows of numbers"),
    ("ragged", [[1, 1], [2]], PRIOR, {}, "field_type", "weights", "same length"),
    ("row off one", [[0.5, 0.5], [0.5, 0.4]], [[1, 2]], {}, "weights_invalid", "matrix[1]", "0.9"),
    ("negative", np.array([[1.5, -0.5], [0.5, 0.5]]), [[1, 2]], {}, "weights_invalid", "matrix[0][1]",
     "between 0 and 1"),
    ("unequal rows", [[2, 0], [3, 1]], [[1, 2]], {}, "weights_invalid", "weights[1]", "same positive sum"),
    ("nan", np.array([[0.5, np.nan], [0.5, 0.5]]), [[1, 2]], {}, "field_type", "matrix[0]", "nan"),
    ("infinite", np.array([[np.inf, 0], [0.5, 0.5]]), [[1, 2]], {}, "field_type", "matrix[0][0]", "number"),
    ("text", [["a", "b"], ["c", "d"]], [[1, 2]], {}, "field_type", "matrix[0][0]", "number"),
    ("true", [[True, False], [False, True]], [[1, 2]], {}, "field_type", "weights[0][0]", "whole"),
    ("three dimensions", np.ones((2, 2, 2)), [[1, 2]], {}, "field_type", "matrix[0][0]", "number"),
    ("prior of another size", WEIGHTS, [[1, 2, 3]], {}, "prior_shape", "prior.joint", "3 answers"),
    ("prior in words", WEIGHTS, "even", {}, "prior_shape", "prior.joint", "rows of numbers"),
    ("unknown option", WEIGHTS, PRIOR, {"order": 2}, "field_unknown", "order", "orders"),
    ("order of zero", WEIGHTS, PRIOR, {"orders": [2, 0]}, "eps_out_of_range", "orders[1]", ""),
    ("orders of nan", WEIGHTS, PRIOR, {"orders": [float("nan")]}, "field_type", "orders", "nan"),
    ("a secret too many", WEIGHTS, PRIOR, {"sensitive": 2}, "field_type", "sensitive", "0 to 1"),
    ("attributes", WEIGHTS, PRIOR, {"attributes": [2, 3]}, "field_type", "attributes", "4"),
    ("breach", WEIGHTS, PRIOR, {"breaches": [1.5]}, "field_type", "breaches[0]", "between 0 and 1"),
    ("targets", WEIGHTS, PRIOR, {"targets": [[1, 0]]}, "targets_invalid", "targets", "4 numbers"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "prior", "options", "code", "field", "said"),
    [case[1:] for case in BAD],
    ids=[case[0] for case in BAD],
)
def test_bad_requests(
    given: Any, prior: Any, options: dict[str, Any], code: str, field: str, said: str
) -> None:
    error = refusal(InvalidInput, fd.measure, given, prior, **options)
    assert (error.code, error.field) == (code, field)
    assert said in error.detail


def test_a_design_is_measured_with_its_own_labels() -> None:
    prior = pd.DataFrame([[3, 1, 2], [1, 1, 4]], columns=list("abc"))
    made, turned = fd.design(prior, fd.LIP("0.2")), list("cab")
    for found in (fd.measure(made, prior[turned]), fd.measure(made.to_frame(), prior[turned])):
        for name in ("lip", "secret_ldp", "information", "variance"):
            assert found[name] == pytest.approx(made.measure()[name])
    targets = pd.DataFrame([[1, -1, 0]], columns=turned)
    expected = made.measure(targets=[[-1, 0, 1]])["target_variances"]
    assert made.measure(targets=targets)["target_variances"] == pytest.approx(expected)


def test_reports_that_are_never_sent_have_no_effect() -> None:
    with_zero, without = [[0.5, 0.5, 0], [0.2, 0.8, 0]], [[0.5, 0.5], [0.2, 0.8]]
    assert dict(fd.measure(with_zero, [50, 50])) == dict(fd.measure(without, [50, 50]))
    assert fd.measure([[1, 0, 0], [0, 1, 0], [0, 1, 0]], [50, 50, 20])["variance"] == math.inf
