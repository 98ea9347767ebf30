# SPDX-License-Identifier: Apache-2.0
"""Rival designs of the form bench, checked by enumeration."""

import importlib
import sys
from math import exp, log
from pathlib import Path
from typing import Any

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
