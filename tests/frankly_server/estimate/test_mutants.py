# SPDX-License-Identifier: Apache-2.0
"""The stored faults apply to the estimator as it is; `python -m tools.mutate` runs the tests against them."""

import ast

from tools.mutants import EQUAL, MUTANTS, NEAREST
from tools.mutate import ROOT, TESTS, changed, faults


def test_every_fault_applies_once_and_is_python() -> None:
    for module, place in faults(19):
        before, after = MUTANTS[module][place]
        assert before != after
        ast.parse(changed(module, place))


def test_the_order_is_the_seed_s_and_takes_modules_in_turn() -> None:
    order = faults(19)
    assert order == faults(19) != faults(20)
    assert [module for module, _ in order[: len(MUTANTS)]] == list(MUTANTS)
    assert len(order) == len(set(order)) >= 60


def test_faults_have_tests_and_reasons() -> None:
    assert set(NEAREST) == set(MUTANTS)
    assert all((ROOT / TESTS / f"{name}.py").is_file() for names in NEAREST.values() for name in names.split())
    assert set(EQUAL) <= set(faults(19))
