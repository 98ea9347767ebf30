# SPDX-License-Identifier: Apache-2.0
"""Rival designs of the form bench, checked by enumeration."""

import importlib
import sys
from collections import Counter
from itertools import combinations, product
from math import exp, inf, log, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def rivals(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])
    return importlib.import_module("_form.rivals")


@pytest.mark.parametrize("choices", [(2, 2), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_fake_data_do_not_amplify(rivals: Any, choices: tuple[int, ...], epsilon: float) -> None:
    """If all answers may differ, an RS+FD report has exactly the level of its sampled answer.

    Arcolezi et al. (2021) randomise that answer at ln(m(e^ε−1)+1) and claim ε for the report. The
    claim holds only for answers that differ in one question.
    """
    assert rivals.fake_data_level(choices, epsilon) == pytest.approx(epsilon)
    amplified = log(len(choices) * (exp(epsilon) - 1) + 1)
    assert rivals.fake_data_level(choices, amplified) > epsilon * 1.2


@pytest.mark.parametrize(("sizes", "drawn"), [((2, 2, 2), 2), ((2, 3, 5), 2), ((4, 3), 1)])
def test_a_cell_of_a_marginal_tells_each_question_as_much_as_stated(
    rivals: Any, sizes: tuple[int, ...], drawn: int
) -> None:
    """The information about a question's shares, from the law of every report."""
    epsilon = 1.3
    ratio, number = exp(epsilon), len(sizes)
    for i, k in enumerate(sizes):
        others = rivals._products([size for j, size in enumerate(sizes) if j != i], drawn - 1)
        sets = [chosen for chosen in combinations(range(number), drawn) if i in chosen]
        assert sum(others.values()) == len(sets)
        found = Counter(prod(sizes[j] for j in chosen if j != i) for chosen in sets)
        assert others == found
        for rest in found:
            # Columns are cells: the true one is e^ε times as likely as any other.
            cells = k * rest
            law = np.ones((k, cells)) / (ratio + cells - 1)
            for x in range(k):
                # The other answers are even and independent.
                law[x, x * rest : (x + 1) * rest] += (ratio - 1) / (ratio + cells - 1) / rest
            information = (law / law.mean(axis=0)) @ law.T
            variance = np.trace(np.linalg.inv(information)) - 1 / k
            stated = (k - 1) / k * ((ratio + cells - 1) / (ratio - 1)) ** 2
            assert variance == pytest.approx(stated)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_a_cap_has_the_variance_of_its_law(rivals: Any, epsilon: float) -> None:
    """All vectors of all m questions out of five, for every t, by enumeration."""
    ratio, best = exp(epsilon), inf
    for drawn in range(1, 6):
        vectors = list(product((0, 1), repeat=drawn))
        for least in range(1, drawn + 1):
            weights = [ratio if sum(v) >= least else 1 for v in vectors]
            right = sum(w for w, v in zip(weights, vectors, strict=True) if v[0]) / sum(weights)
            # An even share from reports that are right with this chance; both shares; drawn of five.
            best = min(best, 5 * 2 * (1 / 4) / (2 * right - 1) ** 2 / (drawn / 5))
    assert rivals.caps(5, epsilon) == pytest.approx(best)


def test_equal_questions_have_the_value_of_the_best_number_drawn(rivals: Any) -> None:
    """Ten questions of five choices at ε = 4: two are drawn, and one of their 25 cells is named."""
    expected = 10 * 10 / 2 * 4 / 5 * ((exp(4) + 24) / (exp(4) - 1)) ** 2
    assert rivals.marginals([(5, 1.0)] * 10, 4.0) == pytest.approx(expected)
