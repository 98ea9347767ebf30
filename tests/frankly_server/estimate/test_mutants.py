# SPDX-License-Identifier: Apache-2.0
"""Stored mutants, which must apply to the current estimator; `python -m tools.mutate` tests them."""

import ast

from tools.mutants import EQUIVALENT, MUTANTS, NEAREST
from tools.mutate import ESTIMATE, ROOT, TESTS, mutated, ordered

WITHOUT_FIGURES = {"__init__", "estimator", "interface"}
"""Modules that compute nothing themselves."""


def test_every_mutant_applies_once_and_is_python() -> None:
    for module, place in ordered(19):
        before, after = MUTANTS[module][place]
        assert before != after
        ast.parse(mutated(module, place))


def test_no_two_mutants_are_the_same() -> None:
    for mutants in MUTANTS.values():
        assert len(set(mutants)) == len(mutants)


def test_the_order_is_the_seed_s_and_takes_modules_in_turn() -> None:
    order = ordered(19)
    assert order == ordered(19) != ordered(20)
    assert [module for module, _ in order[: len(MUTANTS)]] == list(MUTANTS)
    assert len(order) == len(set(order)) == sum(map(len, MUTANTS.values())) >= 90


def test_every_module_that_computes_has_mutants_and_tests() -> None:
    modules = {path.stem for path in (ROOT / "server" / ESTIMATE).glob("*.py")}
    assert set(MUTANTS) == set(NEAREST) == modules - WITHOUT_FIGURES
    assert all(
        (ROOT / TESTS / f"{name}.py").is_file()
        for names in NEAREST.values()
        for name in names.split()
    )
    assert set(EQUIVALENT) <= set(ordered(19))
