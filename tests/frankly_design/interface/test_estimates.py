# SPDX-License-Identifier: Apache-2.0
"""Estimates: exactly unbiased, with the standard errors of an exact computation; as in JSON."""

from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import frankly_design as fd
import numpy as np
import pandas as pd
import pytest
from frankly_design.estimate.flags import SENTENCES
from frankly_design.estimate.margins import METHODS
from frankly_design.kinds.set_counts import SetCounts
from frankly_design.requests.estimate import EstimateRequest, estimate_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, SubsetMechanism, UnaryMechanism

from tests.frankly_design.interface.given import (
    FOUR_BITS,
    JOINT,
    SMALL,
    channel,
    decoder_of,
    expected_counts,
    mean_and_covariance,
    read,
    with_mechanism,
)
from tests.refusals import refusal

SHARES = [Fraction(1, 5), Fraction(1, 2), Fraction(3, 10)]
BINARY = DenseMechanism(4, ((12, 4), (4, 12)))


# -- parity with JSON ------------------------------------------------------------------------------

UNARY = UnaryMechanism(4, 2, 8, 4)
SETS = SetCounts(100, ((40, 12), (12, 35)))
TABLE = {"weights": [[12, 4], [4, 12]], "bits": 4, "counts": [300, 700]}
ROWS: list[tuple[str, Any, Any, dict[str, Any], dict[str, Any]]] = [
    # name, mechanism, counts, options in Python, request in JSON
    ("plain", BINARY, [300, 700], {}, TABLE),
    ("array of counts", BINARY, np.array([300, 700]), {}, TABLE),
    ("series of counts", BINARY, pd.Series([300, 700]), {}, TABLE),
    ("design_prior", BINARY, (300, 700), {"design_prior": [0.25, 0.75]}, {**TABLE, "design_prior": [0.25, 0.75]}),
    ("array of priors", FOUR_BITS, [30, 9, 21, 40], {"design_prior": np.array([1, 2, 5])},
     {"weights": [list(row) for row in FOUR_BITS.weights], "bits": 4, "counts": [30, 9, 21, 40], "design_prior": [1,
      2, 5]}),
    ("targets", BINARY, [300, 700], {"targets": np.array([[0.5, 0], [1, -1]])}, {**TABLE, "targets": [[0.5, 0], [1,
     -1]]}),
    ("targets of fractions", BINARY, [300, 700], {"targets": [[Fraction(1, 2), 0]]}, {**TABLE, "targets": [[0.5, 0]]}),
    ("population", BINARY, [300, 700], {"population": 2000}, {**TABLE, "population": 2000}),
    ("census", BINARY, [300, 700], {"census": True}, {**TABLE, "census": True}),
    ("level", BINARY, [300, 700], {"confidence_level": 0.9}, {**TABLE, "level": 0.9}),
    ("beta", BINARY, [300, 700], {"beta": Fraction(1, 20)}, {**TABLE, "beta": 0.05}),
    ("sets", UNARY, SETS, {}, {"kind": "unary", "params": UNARY.params_json(), "counts": {"n": 100, "pairs": [[40,
     12], [12, 35]]}}),
    ("no reports", BINARY, [0, 0], {}, {**TABLE, "counts": [0, 0]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "counts", "options", "request_"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_figures_are_those_of_json(
    mechanism: Any, counts: Any, options: dict[str, Any], request_: dict[str, Any]
) -> None:
    found, expected = (
        fd.estimate_shares(mechanism, counts, **options),
        estimate_json(read(request_)),
    )
    assert found.figures.to_json() == expected
    assert found.n == expected["n"]
    for array, name in (
        (found.shares, "unbiased"),
        (found.standard_errors, "se"),
        (found.mle, "mle"),
    ):
        listed = [np.nan if v is None else v for v in expected[name]]
        assert np.array_equal(array, listed, equal_nan=True)


def test_the_table_has_every_field_of_a_request() -> None:
    shown = {name for row in ROWS for name in row[4]}
    # The interface has no denial: a field that is added to the request must be named here or above.
    assert shown | {"denial"} == set(EstimateRequest.model_fields)


def test_a_design_estimates_with_the_decoder_of_its_prior() -> None:
    made = with_mechanism(fd.design([[1, 2, 5]], fd.LDP(1)), FOUR_BITS)
    counts = [30, 9, 21, 40]
    own, even = made.estimate(counts=counts), fd.estimate_shares(FOUR_BITS, counts)
    mean, _ = mean_and_covariance(decoder_of(channel(FOUR_BITS), [1, 2, 5]), counts)
    assert own.shares == pytest.approx([float(v) for v in mean], abs=1e-12)
    assert list(own.shares) == list(fd.estimate_shares(made, counts).shares)
    other, _ = mean_and_covariance(decoder_of(channel(FOUR_BITS), [1, 1, 1]), counts)
    assert even.shares == pytest.approx([float(v) for v in other], abs=1e-12)
    assert abs(own.shares - even.shares).max() > 1e-3
    assert list(made.estimate(counts=counts, design_prior=[1, 1, 1]).shares) == list(even.shares)


# -- exact values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [[1, 1, 1], [1, 2, 5]], ids=["even", "uneven"])
def test_expected_counts_give_the_shares_and_their_standard_errors(prior: list[int]) -> None:
    Q = channel(FOUR_BITS)
    counts = [3 * n for n in expected_counts(Q, SHARES)]
    found = fd.estimate_shares(FOUR_BITS, counts, design_prior=prior)
    assert found.shares == pytest.approx([float(p) for p in SHARES], abs=1e-12)
    assert found.n == sum(counts)
    mean, covariance = mean_and_covariance(decoder_of(Q, prior), counts)
    assert mean == SHARES
    assert found.covariance == pytest.approx(np.array(covariance, dtype=float), rel=1e-9, abs=1e-15)
    errors = np.sqrt(np.array([float(covariance[x][x]) for x in range(3)]))
    assert found.standard_errors == pytest.approx(errors, rel=1e-9)
    assert found.covariance.sum() == pytest.approx(0, abs=1e-12)  # shares sum to 1


@pytest.mark.parametrize(
    ("prior", "notions", "mechanism"),
    [
        (JOINT, fd.LIP("0.25"), "optimal"),
        ([[5, 3, 2]], fd.LDP(1), "grr"),
        (SMALL, fd.RLDP(1, 75), "optimal"),
    ],
    ids=["lip", "grr", "rldp"],
)
def test_a_design_of_48_bits_is_unbiased_too(prior: Any, notions: Any, mechanism: str) -> None:
    made = fd.design(prior, notions, mechanism=mechanism)
    answers = len(made.answers)
    shares = [Fraction(2 * x + 1, answers**2) for x in range(answers)]
    counts = expected_counts(channel(made.mechanism), shares)
    found = made.estimate(counts=counts)
    assert found.shares == pytest.approx([float(p) for p in shares], abs=1e-12)
    assert found.labels == made.answers


@pytest.mark.parametrize("census", [False, True])
def test_a_population_that_is_counted_has_less_sampling_noise(census: bool) -> None:
    counts = [4 * n for n in expected_counts(channel(FOUR_BITS), SHARES)]
    n = sum(counts)
    free = fd.estimate_shares(FOUR_BITS, counts)
    D, Q = decoder_of(channel(FOUR_BITS), [1, 1, 1]), channel(FOUR_BITS)
    # Given the truths, the variance is the mean of the answers' own variances.
    privacy = [
        sum(
            (p * (sum((q * d * d for q, d in zip(row, D[t], strict=True)), Fraction(0)) - int(t == x)) for x, (p,
             row) in enumerate(zip(SHARES, Q, strict=True))),
            Fraction(0),
        )
        / n
        for t in range(3)
    ]  # fmt: skip
    found = (
        fd.estimate_shares(FOUR_BITS, counts, census=True)
        if census
        else fd.estimate_shares(FOUR_BITS, counts, population=n)
    )
    assert found.shares == pytest.approx(free.shares, abs=1e-15)
    assert found.standard_errors == pytest.approx(np.sqrt(np.array(privacy, dtype=float)), rel=1e-2)
    assert all(found.standard_errors < free.standard_errors)


@pytest.mark.parametrize(
    "mechanism",
    [UnaryMechanism(4, 3, 12, 4), SubsetMechanism(4, 3, 2, 14)],
    ids=["unary", "subset"],
)
def test_expected_counts_of_sets_give_the_shares(mechanism: Any) -> None:
    made = with_mechanism(fd.design([[1, 1, 1]], fd.LDP(1), mechanism="grr"), mechanism)
    symbols = list(mechanism.symbols())
    counts = expected_counts(channel(mechanism), SHARES)
    listed = SetCounts.of_symbols(3, dict(zip(symbols, counts, strict=True)))
    found = made.estimate(counts=listed)
    assert found.shares == pytest.approx([float(p) for p in SHARES], abs=1e-12)
    # By its definition: (1[x in set] − q0)/(q1 − q0), and what is missing to 1 is spread evenly.
    held = [[mask >> x & 1 for mask in symbols] for x in range(3)]
    if isinstance(mechanism, UnaryMechanism):
        q1, q0 = Fraction(mechanism.keep, 16), Fraction(mechanism.flip, 16)
    else:
        q1 = Fraction(mechanism.inside, 16)
        q0 = (mechanism.size - q1) / 2
    b = [[(h - q0) / (q1 - q0) for h in row] for row in held]
    missing = [(1 - sum(column)) / 3 for column in zip(*b, strict=True)]
    D = [[v + m for v, m in zip(row, missing, strict=True)] for row in b]
    mean, covariance = mean_and_covariance(D, counts)
    assert mean == SHARES
    assert found.covariance == pytest.approx(np.array(covariance, dtype=float), rel=1e-9, abs=1e-15)


def test_sets_from_sampled_reports_are_estimated_like_their_counts() -> None:
    made = with_mechanism(
        fd.design([[1, 1, 1]], fd.LDP(1), mechanism="grr"), UnaryMechanism(4, 3, 12, 4)
    )
    reports = [1, 3, 3, 6, 0, 5, 1]
    assert list(made.estimate(reports).shares) == list(
        made.estimate(counts=made.count(reports)).shares
    )


# -- targets, labels and intervals -----------------------------------------------------------------


def test_targets_are_combinations_and_have_the_names_of_the_table() -> None:
    W = pd.DataFrame([[1, 0, -1], [0.5, 0.5, 0]], index=["a − c", "half"])
    counts = [3 * n for n in expected_counts(channel(FOUR_BITS), SHARES)]
    found = fd.estimate_shares(FOUR_BITS, counts, targets=W)
    exact = [
        sum((Fraction(w) * p for w, p in zip(row, SHARES, strict=True)), Fraction(0))
        for row in W.to_numpy().tolist()
    ]
    assert found.shares == pytest.approx([float(v) for v in exact], abs=1e-12)
    assert found.labels == ("a − c", "half")
    shares = fd.estimate_shares(FOUR_BITS, counts)
    rows = W.to_numpy()
    assert found.covariance == pytest.approx(rows @ shares.covariance @ rows.T, rel=1e-9, abs=1e-15)
    frame = found.to_frame()
    assert list(frame.index) == ["a − c", "half"]
    assert fd.estimate_shares(FOUR_BITS, counts, targets=W.to_numpy()).labels == (0, 1)


def test_labels_name_the_rows() -> None:
    assert fd.estimate_shares(BINARY, [3, 4], labels=["no", "yes"]).labels == ("no", "yes")
    assert fd.estimate_shares(BINARY, [3, 4]).labels == (0, 1)
    made = with_mechanism(fd.design(pd.Series([1, 2], index=["no", "yes"]), fd.LDP(1)), BINARY)
    assert made.estimate([0, 1, 1]).labels == ("no", "yes")
    assert made.estimate([0, 1, 1], labels=("n", "y")).labels == ("n", "y")


@pytest.mark.parametrize("method", METHODS)
def test_intervals_contain_the_estimate_and_grow_with_the_level(method: str) -> None:
    counts = [3 * n for n in expected_counts(channel(BINARY), [Fraction(1, 4), Fraction(3, 4)])]
    low, high = (
        fd.estimate_shares(BINARY, counts, confidence_level=level) for level in (0.8, 0.95)
    )
    narrow, wide = low.interval(method), high.interval(method)
    assert narrow.shape == wide.shape == (2, 2)
    assert (narrow[:, 0] <= low.shares).all()
    assert (low.shares <= narrow[:, 1]).all()
    assert (wide[:, 0] <= narrow[:, 0]).all()
    assert (narrow[:, 1] <= wide[:, 1]).all()
    assert (wide[:, 1] - wide[:, 0] > narrow[:, 1] - narrow[:, 0]).all()
    frame = high.to_frame(method)
    assert list(frame.columns) == ["estimate", "standard_error", "low", "high"]
    assert np.array_equal(frame[["low", "high"]].to_numpy(), wide)


def test_intervals_of_every_sample_cover_the_truth_often_enough() -> None:
    """The chance, over all samples of 12 reports, that a 90 % interval contains the share, exactly."""
    share, n = Fraction(1, 4), 12
    law = [
        sum((p * q for p, q in zip((share, 1 - share), column, strict=True)), Fraction(0))
        for column in zip(*channel(BINARY), strict=True)
    ]
    covered = Fraction(0)
    for k in range(n + 1):
        low, high = fd.estimate_shares(BINARY, [k, n - k], confidence_level=0.9).interval("exact")[
            0
        ]
        if low <= float(share) <= high:
            covered += comb(n, k) * law[0] ** k * law[1] ** (n - k)
    assert float(Fraction(9, 10)) <= float(covered) < 1


def test_estimates_are_unbiased_over_all_samples() -> None:
    """Expectation of shares and of the squared standard error over all samples of 3 reports."""
    Q = channel(FOUR_BITS)
    law = [
        float(sum((p * row[y] for p, row in zip(SHARES, Q, strict=True)), Fraction(0)))
        for y in range(4)
    ]
    mean, variance, square = np.zeros(3), np.zeros(3), np.zeros(3)
    for bars in combinations(range(6), 3):
        counts = np.diff([-1, *bars, 6]) - 1
        ways, chance = 6, 1.0
        for n, rate in zip(counts.tolist(), law, strict=True):
            ways //= (1, 1, 2, 6)[n]
            chance *= rate**n
        found = fd.estimate_shares(FOUR_BITS, counts)
        mean += ways * chance * found.shares
        square += ways * chance * found.shares**2
        variance += ways * chance * found.covariance.diagonal()
    assert mean == pytest.approx([float(p) for p in SHARES], abs=1e-12)
    assert variance == pytest.approx(square - mean**2, abs=1e-12)


def test_without_reports_nothing_is_known_and_one_report_has_no_spread() -> None:
    none, one = fd.estimate_shares(BINARY, [0, 0]), fd.estimate_shares(BINARY, [1, 0])
    assert np.isnan(none.shares).all()
    assert np.isnan(none.interval()).all()
    assert none.covariance.shape == one.covariance.shape == (2, 2)
    assert np.isnan(one.covariance).all()
    assert one.shares == pytest.approx([1.5, -0.5])
    assert "There are no reports." in repr(none)


def test_what_cannot_be_estimated_is_nan_and_noted() -> None:
    found = fd.estimate_shares(DenseMechanism(4, ((12, 4), (4, 12), (4, 12))), [30, 50])
    assert not np.isnan(found.shares[0])
    assert np.isnan(found.shares[1:]).all()
    assert SENTENCES["not_identifiable"] in repr(found).splitlines()


BAD: list[tuple[str, Any, dict[str, Any], str, str, str]] = [
    ("one count", [3], {}, "counts_invalid", "counts", "2 report"),
    ("three counts", [1, 2, 3], {}, "counts_invalid", "counts", "2 report"),
    ("negative", [3, -1], {}, "counts_invalid", "counts[1]", "zero or more"),
    ("halves", np.array([0.5, 1.5]), {}, "counts_invalid", "counts[0]", "whole"),
    ("nan", [1, float("nan")], {}, "field_type", "counts", "nan"),
    ("infinite", [1, float("inf")], {}, "counts_invalid", "counts[1]", "whole"),
    ("true", [True, 1], {}, "counts_invalid", "counts[0]", "whole"),
    ("text", ["1", "2"], {}, "counts_invalid", "counts[0]", "whole"),
    ("a word", "many", {}, "counts_invalid", "counts", "2 report"),
    ("none", None, {}, "counts_invalid", "counts", "2 report"),
    ("two dimensions", [[1, 2], [3, 4]], {}, "counts_invalid", "counts[0]", "whole"),
    ("sets", SETS, {}, "counts_invalid", "counts", "each report symbol"),
    ("target width", [1, 2], {"targets": [[1, 0, 0]]}, "targets_invalid", "targets[0]", "2 numbers"),
    ("target of nan", [1, 2], {"targets": [[float("nan"), 1]]}, "field_type", "targets[0]", "nan"),
    ("target in words", [1, 2], {"targets": [["a", "b"]]}, "field_type", "targets[0][0]", "number"),
    ("no targets", [1, 2], {"targets": []}, "prior_shape", "targets", "rows"),
    ("prior negative", [1, 2], {"design_prior": [2, -1]}, "prior_value", "design_prior", "zero or more"),
    ("prior of another size", [1, 2], {"design_prior": [1, 1, 1]}, "prior_shape", "design_prior", "2"),
    ("prior a number", [1, 2], {"design_prior": 3}, "prior_shape", "design_prior", "array"),
    ("prior of nan", [1, 2], {"design_prior": [1, float("nan")]}, "field_type", "design_prior", "nan"),
    ("population too small", [1, 2], {"population": 2}, "counts_invalid", "population", "3 reports"),
    ("beta of one", [1, 2], {"beta": 1}, "field_type", "beta", "below 1"),
    ("beta of nan", [1, 2], {"beta": float("nan")}, "field_type", "beta", "nan"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "options", "code", "field", "said"),
    [case[1:] for case in BAD],
    ids=[case[0] for case in BAD],
)
def test_bad_requests(
    counts: Any, options: dict[str, Any], code: str, field: str, said: str
) -> None:
    error = refusal(InvalidInput, fd.estimate_shares, BINARY, counts, **options)
    assert (error.code, error.field) == (code, field)
    assert said in error.detail


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, float("nan"), "0.9", None, True], ids=repr)
def test_bad_confidence_levels(level: Any) -> None:
    error = refusal(InvalidInput, fd.estimate_shares, BINARY, [1, 2], confidence_level=level)
    assert error.code == "confidence_range"
    assert "between 0 and 1" in error.detail


def test_people_who_deny_are_corrected_as_in_json() -> None:
    counts = [30, 9, 21, 40]
    response = estimate_json(
        {
            "weights": [list(row) for row in FOUR_BITS.weights],
            "bits": 4,
            "counts": counts,
            "denial": 0.2,
        }
    )
    found = fd.estimate_shares(FOUR_BITS, counts).denied(0.2)
    expected = [[row["denied_estimate"], row["denied_high"]] for row in response["denied"]]
    assert found == pytest.approx(np.array(expected), rel=1e-12)
    assert refusal(InvalidInput, fd.estimate_shares(FOUR_BITS, counts).denied, 1).field == "denial"


def test_levels_of_confidence_are_shown_as_they_are() -> None:
    for level, text in ((0.999, "99.9%"), (0.975, "97.5%"), (0.95, "95%")):
        assert f"low ({text})" in repr(
            fd.estimate_shares(FOUR_BITS, [1, 2, 3, 4], confidence_level=level)
        )


def test_a_bar_is_the_interval_also_without_the_estimate_in_it() -> None:
    found = fd.design([[1, 2, 3]], fd.LDP(1), mechanism="grr").estimate(counts=[1, 0, 20])
    (lines,) = found.plot(method="kl").collections
    ends = np.array([segment[:, 0] for segment in lines.get_segments()])
    assert ends == pytest.approx(found.interval("kl"))
    assert (found.shares < found.interval("kl")[:, 0]).any()


def test_counts_of_values_are_read_by_the_reports_numbers() -> None:
    counts = pd.Series([0] * 5 + [3] * 30 + [2] * 9).value_counts()
    assert list(counts.index) == [3, 2, 0]
    found = fd.estimate_shares(FOUR_BITS, counts)
    assert list(found.shares) == list(fd.estimate_shares(FOUR_BITS, [5, 0, 9, 30]).shares)
    for bad in (
        pd.Series([1, 2], index=[0, 9]),
        pd.Series([1, 2], index=[0, 0]),
        pd.Series([1], index=["a"]),
    ):
        assert refusal(InvalidInput, fd.estimate_shares, FOUR_BITS, bad).field == "counts"


def test_names_of_targets_are_kept() -> None:
    prior = pd.DataFrame([[5, 3, 2]], columns=list("abc"))
    targets = pd.DataFrame([[0, 1, -1]], columns=list("bac"), index=["a - c"])
    made = fd.design(prior, fd.LDP(1), targets=targets)
    assert made.estimate(counts=[10] * made.reports).labels == ("a - c",)
    single = made.estimate(
        counts=[10] * made.reports, targets=pd.Series([1, 0, 0], index=list("bac"), name="b")
    )
    assert single.labels == ("b",)
    twice = pd.DataFrame([[0, 1]], columns=["a", "a"])
    error = refusal(
        InvalidInput, fd.estimate_shares, FOUR_BITS, [1, 1, 1, 1], labels=list("abc"), targets=twice
    )
    assert error.field == "targets"
