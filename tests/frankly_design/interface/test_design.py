# SPDX-License-Identifier: Apache-2.0
"""A design: its figures, exact samples by enumeration of all draws, counts, and verification."""

import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import frankly_design as fd
import numpy as np
import pandas as pd
import pytest
from frankly_design.kinds.set_counts import SetCounts
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import (
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_design.interface.given import (
    FOUR_BITS,
    JOINT,
    SMALL,
    channel,
    decoder_of,
    law_of_draws,
    with_mechanism,
)
from tests.refusals import code_and_field, refusal

LABELS = ["<b>yes</b>", 'no & "never"', "it's"]


def labelled(mechanism: Any = FOUR_BITS) -> fd.Design:
    """Return a design for three labelled answers, with another mechanism."""
    return with_mechanism(
        fd.design(pd.Series([1, 2, 3], index=LABELS), fd.LDP(1), mechanism="grr"), mechanism
    )


# -- figures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["variance", "information", "hamming"])
def test_figures_are_those_of_the_integer_weights(objective: str) -> None:
    made = fd.design(JOINT, fd.LIP("0.25"), objective=objective)
    Q = channel(made.mechanism)
    p = [Fraction(sum(column), 750) for column in zip(*JOINT, strict=True)]
    law = [
        sum((a * row[y] for a, row in zip(p, Q, strict=True)), Fraction(0))
        for y in range(len(Q[0]))
    ]
    information = math.fsum(
        float(a * q) * math.log(q / rate)
        for a, row in zip(p, Q, strict=True)
        for q, rate in zip(row, law, strict=True)
        if q
    )
    right = sum(
        (max(a * q for a, q in zip(p, column, strict=True)) for column in zip(*Q, strict=True)),
        Fraction(0),
    )
    assert made.information == pytest.approx(information, rel=1e-9)
    entropy = -math.fsum(float(v) * math.log(v) for v in p)
    assert made.normalised_information == pytest.approx(information / entropy, rel=1e-9)
    assert made.hamming == pytest.approx(float(1 - right), rel=1e-9)
    assert made.variance == pytest.approx(float(made.target_variances.sum()), rel=1e-12)
    assert made.reports == len(Q[0])
    assert (
        made.value
        == {"variance": made.variance, "information": made.information, "hamming": made.hamming}[
            objective
        ]
    )
    assert made.bound is not None
    assert made.gap == pytest.approx(abs(made.value - made.bound), abs=1e-15)
    assert (made.objective, made.name, made.certified, made.identifiable) == (
        objective,
        "optimal",
        True,
        True,
    )
    assert made.estimable == tuple(f"answer {x}" for x in range(4))
    assert made.channel.shape == (4, made.reports)
    assert made.channel == pytest.approx(np.array(Q, dtype=float), abs=1e-15)
    assert made.channel.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-12)


def test_the_level_of_the_answer_is_rounded_up() -> None:
    made = fd.design([[1, 1, 1]], fd.LDP("1.0986122"), mechanism="grr")
    Q = channel(made.mechanism)
    worst = max(a / b for column in zip(*Q, strict=True) for a in column for b in column)
    assert math.log(worst) <= made.answer_ldp <= math.log(worst) + 2e-9
    assert fd.design(JOINT, fd.PML("0.3")).answer_ldp == math.inf


def test_targets_have_their_own_variances() -> None:
    targets = [[1, 0, 0, -1], [1, 1, 0, 0]]
    made = fd.design(JOINT, fd.LIP("0.25"), targets=targets)
    counts = [sum(column) for column in zip(*JOINT, strict=True)]
    Q, p = channel(made.mechanism), np.array(counts) / sum(counts)
    D, law = np.array(decoder_of(Q, counts), dtype=float), p @ np.array(Q, dtype=float)
    wanted = (np.array(targets) @ D) ** 2 @ law - (np.array(targets) @ p) ** 2
    assert made.target_variances == pytest.approx(wanted, rel=1e-9)
    assert made.value == pytest.approx(wanted.sum(), rel=1e-9)
    # The variance is of the shares, whatever the targets are.
    assert made.variance == pytest.approx(np.sum(D**2 @ law) - p @ p, rel=1e-9)


def test_a_family_has_no_bound_and_states_its_parameters() -> None:
    made = fd.design([[3, 5]], fd.LDP(), mechanism="warner", p00="0.75", p11="0.75")
    assert (made.bound, made.gap, made.certified) == (None, None, False)
    assert made.parameters["answers"] == 2
    made.parameters.clear()
    assert made.parameters["reports"] == 2
    assert made.channel == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]), abs=1e-12)


def test_the_channel_of_sets_is_over_all_sets() -> None:
    mechanism = UnaryMechanism(4, 3, 12, 4)
    made = labelled(mechanism)
    assert made.channel.tolist() == [[float(q) for q in row] for row in channel(mechanism)]
    frame = made.to_frame()
    held = [[label for x, label in enumerate(LABELS) if mask >> x & 1] for mask in range(8)]
    assert list(frame.columns) == [f"{{{', '.join(labels)}}}" for labels in held]
    assert frame.to_numpy()[2, 6] == float(mechanism.probability(6, 2))


def test_too_many_sets_are_no_table() -> None:
    made = fd.design([[1] * 40], fd.LDP(1))
    for act in (lambda: made.channel, made.to_frame):
        error = refusal(InvalidInput, act)
        assert (error.code, error.field) == ("unsupported", "mechanism")
        assert "sample and estimate" in error.detail
    assert isinstance(made.mechanism, SubsetMechanism)
    assert made.reports == math.comb(40, made.mechanism.size)
    (drawn,) = made.sample([7])
    assert made.count([drawn]).n == 1
    assert len(made.estimate([drawn]).shares) == 40


# -- samples ---------------------------------------------------------------------------------------

FEW_BITS: list[tuple[str, Any]] = [
    ("dense", FOUR_BITS),
    ("dense, zeros", DenseMechanism(4, ((16, 0), (0, 16), (7, 9)))),
    ("unary", UnaryMechanism(4, 3, 12, 5)),
    ("subset of one", SubsetMechanism(4, 3, 1, 11)),
    ("subset of two", SubsetMechanism(4, 3, 2, 13)),
]


@pytest.mark.parametrize(
    "mechanism", [case[1] for case in FEW_BITS], ids=[case[0] for case in FEW_BITS]
)
def test_all_draws_together_are_the_weights(
    mechanism: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the 2^bits draws is equally likely, so their number is the weight itself."""
    made = labelled(mechanism)
    for x, label in enumerate(LABELS):

        def draw(randbits: Any, label: str = label) -> int:
            # The default source of bits is bound when the function is defined.
            with monkeypatch.context() as patch:
                patch.setattr(type(mechanism).sample, "__defaults__", (randbits,))
                (drawn,) = made.sample([label])
            return drawn

        law = law_of_draws(draw)
        assert law == {y: q for y in mechanism.symbols() if (q := mechanism.probability(y, x))}


class Recorder(DenseMechanism):
    """Mechanism whose report is the truth itself."""

    def sample(self, truth: int, randbits: Any = None) -> int:
        return truth


def test_labels_go_in_and_numbers_of_columns_come_out() -> None:
    made = labelled(Recorder(4, FOUR_BITS.weights))
    expected = [2, 0, 1, 2]
    answers = [LABELS[x] for x in expected]
    for given in (
        answers,
        tuple(answers),
        iter(answers),
        np.array(answers),
        pd.Series(answers),
        pd.Categorical(answers),
    ):
        found = made.sample(given)
        assert found == expected
        assert all(type(y) is int for y in found)
    assert made.sample([]) == []


def test_numbers_of_numpy_are_labels_too() -> None:
    made = with_mechanism(fd.design([[1, 2, 3]], fd.LDP(1)), Recorder(4, FOUR_BITS.weights))
    assert made.sample(np.array([2, 0, 1])) == [2, 0, 1]
    frame = pd.DataFrame([[1, 2, 3]], columns=[2.5, 5.0, 10.0])
    other = with_mechanism(fd.design(frame, fd.LDP(1)), Recorder(4, FOUR_BITS.weights))
    assert other.sample(np.array([10.0, 2.5])) == [2, 0]


def test_pairs_may_be_tuples_or_lists() -> None:
    frame = pd.DataFrame(SMALL, index=["ill", "well"], columns=["no", "yes"])
    made = fd.design(frame, fd.SecretLDP(1), mechanism="secret-rr")
    with_mechanism(made, Recorder(4, ((16, 0), (0, 16), (16, 0), (0, 16))))
    assert made.sample([("ill", "yes"), ["well", "no"], ("well", "yes")]) == [1, 2, 3]


SECRET = "secret-answer-417"
BAD_ANSWERS: list[tuple[str, Any]] = [
    ("unknown", [SECRET]), ("after known ones", [LABELS[0], SECRET]), ("bytes", [SECRET.encode()]), ("number",
     [417417]),
    ("none", [None]), ("nan", [float("nan")]), ("dict", [{SECRET: 1}]), ("set", [{SECRET}]), ("a list", [[SECRET]]),
    ("text of letters", SECRET), ("a number instead of a list", 417417), ("array", np.array([SECRET])),
    ("a place", [0]), ("frame", pd.DataFrame({SECRET: [1]})),
]  # fmt: skip


@pytest.mark.parametrize(
    "answers", [case[1] for case in BAD_ANSWERS], ids=[case[0] for case in BAD_ANSWERS]
)
def test_an_unknown_answer_is_refused_without_repeating_it(answers: Any) -> None:
    error = refusal(InvalidInput, labelled().sample, answers)
    assert (error.code, error.field) == ("field_type", "answers")
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert SECRET not in str(error)
    assert "417" not in str(error)
    assert all(repr(label) in error.detail for label in LABELS)


def test_a_long_list_of_answers_is_cut() -> None:
    made = fd.design([[1] * 40], fd.LDP(1))
    detail = refusal(InvalidInput, made.sample, [99]).detail
    assert detail.endswith("22, 23, …")
    assert "99" not in detail


# -- counts ----------------------------------------------------------------------------------------


def test_counts_of_columns() -> None:
    made = labelled()
    reports = [3, 0, 3, 2, 3, 0]
    expected = [2, 0, 1, 3]
    for given in (reports, tuple(reports), iter(reports), np.array(reports), pd.Series(reports)):
        counts = made.count(given)
        assert counts == expected
        assert all(type(n) is int for n in counts)
    assert made.count([]) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "mechanism",
    [UnaryMechanism(4, 3, 12, 4), SubsetMechanism(4, 3, 2, 12)],
    ids=["unary", "subset"],
)
def test_counts_of_sets(mechanism: Any) -> None:
    made = labelled(mechanism)
    reports = [0b011, 0b110, 0b011, 0b101]
    found = made.count(np.array(reports))
    assert isinstance(found, SetCounts)
    sets = [{x for x in range(3) if mask >> x & 1} for mask in reports]
    pairs = [[sum({x, z} <= held for held in sets) for z in range(3)] for x in range(3)]
    assert found.n == 4
    assert [list(row) for row in found.pairs] == pairs == [[3, 2, 1], [2, 3, 1], [1, 1, 2]]
    assert found.symbols == tuple(sorted(Counter(reports).items()))
    assert made.count([]).n == 0


@pytest.mark.parametrize("outside", [4, -1, 10**9])
def test_a_report_that_is_no_column_is_refused(outside: int) -> None:
    error = refusal(InvalidInput, labelled().count, [0, outside])
    assert (error.code, error.field) == ("counts_invalid", "reports")
    assert error.detail == f"reports are numbers from 0 to 3, not {outside}"
    assert code_and_field(InvalidInput, labelled().estimate, [outside]) == (
        "counts_invalid",
        "reports",
    )


# -- what it is for --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "notions"),
    [
        (JOINT, fd.LIP("0.25")), (JOINT, fd.LDP(1)), (JOINT, fd.SRLIP("0.3", [2, 2])), (SMALL, fd.RLDP(1, 75)),
        (JOINT, fd.DPV("0.5")), (JOINT, fd.PMC("0.3")), (JOINT, [fd.LIP("0.25"), fd.LDP(1)]),
    ],
    ids=["lip", "ldp", "srlip", "rldp", "dpv", "pmc", "two"],
)  # fmt: skip
def test_a_mechanism_with_less_privacy_is_rejected(prior: Any, notions: Any) -> None:
    made = fd.design(prior, notions)
    made.verify()
    size = made.mechanism.answers
    # Sends each answer unchanged with chance 15/16, else one of the others.
    rows = [[0] * size for _ in range(size)]
    for x in range(size):
        rows[x][x] += 15
        rows[x][(x + 1) % size] += 1
    made.mechanism = DenseMechanism(4, tuple(map(tuple, rows)))
    assert refusal(fd.DocumentRejected, made.verify).reason == "privacy"


def test_a_slightly_larger_level_is_rejected() -> None:
    made, other = (fd.design(JOINT, fd.LIP(level)) for level in ("0.25", "0.251"))
    made.mechanism = other.mechanism
    assert refusal(fd.DocumentRejected, made.verify).reason == "privacy"
    other.mechanism = fd.design(JOINT, fd.LIP("0.25")).mechanism
    other.verify()


def test_every_claim_is_verified() -> None:
    made = fd.design(JOINT, [fd.LIP("0.25"), fd.LDP("0.5")])
    made.mechanism = fd.design(JOINT, fd.LIP("0.25")).mechanism
    with pytest.raises(fd.DocumentRejected):
        made.verify()


def test_a_design_measures_itself_at_its_prior() -> None:
    made = fd.design(JOINT, fd.LIP("0.25"))
    assert (
        dict(made.measure())
        == dict(fd.measure(made, JOINT))
        == dict(fd.measure(made.mechanism, JOINT))
    )
    assert made.measure()["lip"] <= 0.25 < made.measure(sensitive=0, orders=[1, "inf"])["dpv"]
    assert set(made.measure(orders=[1, "inf"])["sibson"]) == {"1", "inf"}
    pairs = fd.design(SMALL, fd.SecretLDP(1), mechanism="secret-rr")
    assert pairs.measure()["secret_ldp"] == fd.measure(pairs, SMALL)["realised_epsilon"] <= 1
    row = fd.design([[1, 2, 3]], fd.LDP(1))
    assert dict(row.measure()) == dict(fd.measure(row, [[1, 2, 3]]))


def test_a_product_is_sampled_and_estimated() -> None:
    made = fd.design(SMALL, fd.SecretLDP(1), mechanism="independent-reporting")
    assert isinstance(made.mechanism, ProductMechanism)
    drawn = made.sample(made.answers)
    assert all(y in set(made.mechanism.symbols()) for y in drawn)
    Q = channel(made.mechanism)
    frame = made.to_frame()
    assert frame.to_numpy() == pytest.approx(np.array(Q, dtype=float), abs=1e-15)
    assert list(frame.columns) == [str([s, u]) for s, u in product(range(2), repeat=2)]
    assert made.estimate(counts=[10, 20, 30, 40]).labels == made.answers
    by_report, counts = made.estimate(drawn), [drawn.count(y) for y in made.mechanism.symbols()]  # type: ignore[arg-type]
    assert list(by_report.shares) == list(made.estimate(counts=counts).shares)


def test_estimates_need_reports_or_counts() -> None:
    made = labelled()
    cases: list[dict[str, Any]] = [{}, {"reports": [1], "counts": [0, 1, 0, 0]}]
    for given in cases:
        assert code_and_field(InvalidInput, made.estimate, **given) == ("field_missing", "reports")
    assert list(made.estimate([3, 0]).shares) == list(made.estimate(counts=[1, 0, 0, 1]).shares)


def test_a_design_goes_to_another_process() -> None:
    made = fd.design(JOINT, fd.LIP("0.25"), timer=lambda: 0.0, limits={"seconds": 5})
    copied = pickle.loads(pickle.dumps(made))
    assert copied.to_json() == made.to_json()
    assert copied.sample([0, 1]) is not None


def test_two_columns_with_one_label_are_refused() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"])
    assert refusal(InvalidInput, fd.design, frame, fd.LDP(1)).field == "prior.joint"


def test_pairs_of_one_row_are_pairs_of_answers() -> None:
    made = fd.design([[1, 2]], fd.SecretLDP(1), mechanism="secret-rr")
    assert made.answers == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert len(repr(made).splitlines()) == 5 + 1 + 4
    assert len(made.sample(np.array([[0, 0], [1, 1]]))) == 2


def test_a_design_with_targets_estimates_them() -> None:
    targets = [[1, 0, 0, -1], [0, 1, 1, 0]]
    made = fd.design(JOINT, fd.LIP("0.25"), targets=targets)
    counts = [10] * made.reports
    found = made.estimate(counts=counts)
    shares = made.estimate(counts=counts, targets="shares").shares
    assert found.shares == pytest.approx(np.array(targets) @ shares, abs=1e-9)


BAD_REPORTS = [
    ("a fraction", fd.LIP("0.25"), {}, [1.7]), ("text", fd.LIP("0.25"), {}, ["2"]),
    ("none", fd.LIP("0.25"), {}, [None]), ("no list", fd.LIP("0.25"), {}, 5),
    ("beyond the table", fd.LIP("0.25"), {}, [99]), ("negative", fd.LIP("0.25"), {}, [-1]),
    ("a foreign set", fd.LDP(1), {"mechanism": "oue"}, [1 << 20]),
    ("a negative set", fd.LDP(1), {"mechanism": "oue"}, [-1]),
    ("a set of another size", fd.LDP("0.5"), {"mechanism": "subset-selection"}, [0b1111]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("notion", "options", "reports"),
    [row[1:] for row in BAD_REPORTS],
    ids=[r[0] for r in BAD_REPORTS],
)
def test_reports_that_no_device_sends_are_refused(notion: Any, options: Any, reports: Any) -> None:
    made = fd.design(JOINT, notion, **options)
    error = refusal(InvalidInput, made.count, reports)
    assert (error.code, error.field) == ("counts_invalid", "reports")
