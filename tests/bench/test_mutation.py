# SPDX-License-Identifier: Apache-2.0
"""Mutation bench: its mutants, sample, verdicts and list of survivors."""

import ast
import importlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def bench(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])
    areas = importlib.import_module("_mutation.areas")
    monkeypatch.setattr(areas, "_mutants", READ_ONCE(areas._mutants))
    return importlib.import_module


READ_ONCE = cache(cache)
"""Returns the same cached function each time, so that all tests share the mutants of a file."""


PYTHON = b'''
"""A module."""
from typing import Final
LIMIT: Final = 3
def f(a: int, b: int = 1) -> bool:
    """Say something."""
    if a < b and not b:  # a < b
        raise ValueError(f"{a} + 1", "some_code")
    note("two words", max(a, b))
    return a + b == LIMIT
class A:
    @property
    def g(self):
        return [x for x in self.y if x]
'''


def changes(mutants: list[Any]) -> set[tuple[str, str, str]]:
    return {(one.function, one.operator, one.change) for one in mutants}


def test_python_is_changed_node_by_node(bench: Any) -> None:
    mutants = bench("_mutation.python_mutants").mutants("a.py", PYTHON)
    assert changes(mutants) == {
        ("", "constant", "3 -> 4"), ("", "constant", "3 -> 2"),
        ("", "constant", "1 -> 2"), ("", "constant", "1 -> 0"),
        ("f", "comparison", "< -> <="), ("f", "and/or", "and -> or"), ("f", "not", "not -> "),
        ("f", "condition", "a < b and not b -> True"), ("f", "condition", "a < b and not b -> False"),
        ("f", "raise removed", 'raise ValueError(f"{a} + 1", "some_code") -> pass'),
        ("f", "code", '"some_code" -> "xsome_code"'),
        ("f", "call removed", 'note("two words", max(a, b)) -> pass'), ("f", "min/max, any/all", "max -> min"),
        ("f", "return", "a + b == LIMIT -> True"), ("f", "return", "a + b == LIMIT -> False"),
        ("f", "arithmetic", "+ -> -"), ("f", "comparison", "== -> !="),
        ("A.g", "return", "[x for x in self.y if x] -> None"), ("A.g", "condition", "x -> True"),
    }  # fmt: skip
    for mutant in mutants:
        assert ast.parse(mutant.apply(PYTHON))
        assert mutant.apply(PYTHON) != PYTHON


JAVASCRIPT = b"""
/** @param {number} a < b */
export async function f(a) {
  if (a < 3 && /[/]/.test(`${a ? "x" : `a < b`}`)) throw new Error("code", "two words");
  await send(a, true);
  return { code: "a_code", b: a / 2 };
}
"""


def test_javascript_is_changed_token_by_token(bench: Any) -> None:
    mutants = bench("_mutation.javascript_mutants").mutants("a.js", JAVASCRIPT)
    condition = '(a < 3 && /[/]/.test(`${a ? "x" : `a < b`}`))'[1:-1]
    assert changes(mutants) == {
        ("f", "comparison", "< -> <="), ("f", "constant", "3 -> 4"), ("f", "constant", "3 -> 2"),
        ("f", "and/or", "&& -> ||"),
        ("f", "condition", f"{condition} -> true"), ("f", "condition", f"{condition} -> false"),
        ("f", "raise removed", 'throw new Error("code", "two words") -> '), ("f", "code", '"code" -> "xcode"'),
        ("f", "call removed", "await send(a, true) -> "), ("f", "constant", "true -> false"),
        ("f", "return", '{ code: "a_code", b: a / 2 } -> null'), ("f", "code", '"a_code" -> "xa_code"'),
        ("f", "arithmetic", "/ -> *"), ("f", "constant", "2 -> 3"), ("f", "constant", "2 -> 1"),
    }  # fmt: skip


def test_a_mutant_keeps_its_name_and_its_place_in_the_draw_when_lines_move(bench: Any) -> None:
    find, ordered = bench("_mutation.python_mutants").mutants, bench("_mutation.mutant").ordered
    moved = b"# A new first line\nOTHER = g()\n" + PYTHON
    before = [one.id for one in ordered(find("a.py", PYTHON), 1)]
    after = [one.id for one in ordered(find("a.py", moved), 1)]
    assert after == before
    assert before != [one.id for one in ordered(find("a.py", PYTHON), 2)]
    assert len(set(before)) == len(before)


def test_the_sample_is_seeded_and_stratified(bench: Any, root: Path) -> None:
    areas = bench("_mutation.areas")
    tasks = areas.sample(root, 22)
    assert [task.mutant.id for task in tasks] == [task.mutant.id for task in areas.sample(root, 22)]
    assert [area.name for area in areas.AREAS if area.is_strict] == [
        "acceptance", "ledger", "erasure", "roles", "estimate",
    ]  # fmt: skip
    for area in areas.AREAS:
        mine = [task for task in tasks if task.area is area]
        assert 0.8 * area.most <= len(mine) <= area.most, area.name
    files = {path for area in areas.AREAS for part in area.parts for path in part.paths()}
    assert all((root / path).is_file() for path in files)
    assert all(part.test_files() for area in areas.AREAS for part in area.parts)


def test_every_file_that_estimates_is_in_the_sample(bench: Any, root: Path) -> None:
    areas = bench("_mutation.areas")
    drawn = {
        Path(path).name for area in areas.AREAS for part in area.parts for path in part.paths()
    }
    folder = root / "design" / "frankly_design" / "estimate"
    assert {path.name for path in folder.glob("*.py")} - drawn == {"__init__.py"}


def test_every_stored_survivor_is_a_mutant_of_this_code_in_an_area_that_may_have_it(
    bench: Any, root: Path
) -> None:
    areas, stored = bench("_mutation.areas"), bench("_mutation.survivors").stored()
    mutants = {
        one.key: one for path in {key[0] for key in stored} for one in areas._mutants(root, path)
    }
    assert [key for key in stored if key not in mutants] == []
    for key, survivor in stored.items():
        area, _ = areas.owner(mutants[key])
        assert survivor.kind == "equivalent" or not area.is_strict, key


def test_entries_need_a_kind_and_a_reason(bench: Any, tmp_path: Path) -> None:
    survivors, path = bench("_mutation.survivors"), tmp_path / "list.toml"
    key = ("a.py", "f", "if \"a\" == 'b':", "== -> !=")
    text = survivors.entry(key)
    path.write_text(text)
    with pytest.raises(ValueError, match="invalid entry"):
        survivors.stored(path)
    whole = text.replace('kind = ""', 'kind = "equivalent"').replace('why = ""', 'why = "so"')
    path.write_text(whole)
    assert survivors.stored(path) == {key: survivors.Survivor("equivalent", "so")}
    path.write_text(whole * 2)
    with pytest.raises(ValueError, match="repeated entry"):
        survivors.stored(path)


@pytest.fixture
def small(bench: Any, tmp_path: Path) -> Any:
    """A repository that contains one function with two tests, and the bench area of that function."""
    for name in ("analyst", "design", "server", "shared", "client_sdk", "tests"):
        (tmp_path / "repository" / name).mkdir(parents=True)
    top = tmp_path / "repository"
    (top / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntimeout = 60\n")
    (top / "shared" / "product.py").write_text(
        "def least(a, b):\n    spare = 1\n    if a < b:\n        return a\n    return b\n"
    )
    (top / "tests" / "test_product.py").write_text(
        "from product import least\n\n\ndef test_least():\n    assert (least(1, 2), least(2, 1)) == (1, 2 - 1)\n\n\n"
        "def test_broken():\n    assert False\n"
    )
    return top


def test_a_sample_run_is_judged_and_can_be_resumed(
    bench: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bench runs in a separate process, because it forks and changes the environment."""
    areas = bench("_mutation.areas")
    program = f"""
import sys
sys.path.insert(0, {str(Path(areas.__file__).parents[1])!r})
from pathlib import Path
from _mutation import areas, child, running
areas._TESTS = Path({str(small)!r}) / "tests"
child._LIBRARIES = []
child.warm()
area = areas.Area("some", 20, (areas.Part("shared", "product", "test_product"),))
areas.AREAS = (area,)
root = Path({str(small)!r})
tasks = areas.sample(root, 1, [area])
bench = running.Bench(root, running.Results.read(Path({str(tmp_path / "kept.jsonl")!r})), lambda text: print(text))
bench.run(tasks, 2)
"""
    command = [sys.executable, "-c", program]
    first = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert first.returncode == 0, first.stderr
    assert (
        "skipped because they fail without a mutant: tests/test_product.py::test_broken"
        in first.stdout
    )
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    verdicts = {line["change"]: line["verdict"] for line in kept if "id" in line}
    assert verdicts.pop("1 -> 2", verdicts.pop("1 -> 0", None)) == "survived"
    assert verdicts.pop("< -> <=", "survived") == "survived"
    assert verdicts
    assert set(verdicts.values()) == {"killed"}
    assert (
        (small / "shared" / "product.py").read_text().startswith("def least(a, b):\n    spare = 1")
    )
    assert subprocess.run(command, capture_output=True, text=True, timeout=120).stdout == ""


def test_a_survivor_without_a_reason_breaks_the_bound(bench: Any) -> None:
    mutation, areas = bench("mutation"), bench("_mutation.areas")
    key, Task, Mutant = "line", areas.Task, bench("_mutation.mutant").Mutant
    acceptance, trust = areas.AREAS[0], areas.AREAS[1]
    tasks = [
        Task(area, area.parts[0], Mutant("a.py", "f", "not", key, "not", "", 0, 3, nth))
        for nth, area in enumerate((acceptance, acceptance, trust, trust))
    ]
    verdicts = [(task, {"verdict": "survived"}) for task in tasks[1:]]
    verdicts.append((tasks[0], {"verdict": "killed"}))
    kinds = {tasks[1].mutant.key: "harmless", tasks[2].mutant.key: "equivalent"}
    Survivor = bench("_mutation.survivors").Survivor
    found = mutation.result(
        verdicts, {name: Survivor(kind, "so") for name, kind in kinds.items()}, is_whole=True
    )
    assert found.figures == {
        "mutants": 4, "killed": 1, "equivalent": 1, "harmless": 1, "unexplained": 1,
        "harmless_where_none_may_be": 1, "without_equivalent": 3,
    }  # fmt: skip
    assert found.short == ["unexplained", "harmless_where_none_may_be", "without_equivalent"]
    assert found.extra["areas"][0] == {
        "area": "acceptance", "mutants": 2, "killed": 1, "equivalent": 0, "harmless": 1, "unexplained": 0,
    }  # fmt: skip


def test_the_quick_sample_has_mutants_of_every_area_but_the_slowest(bench: Any, root: Path) -> None:
    mutation, areas = bench("mutation"), bench("_mutation.areas")
    tasks = mutation._quick(areas.sample(root, mutation.SEED))
    assert len(tasks) == mutation.QUICK
    assert {task.area.name for task in tasks} == {area.name for area in areas.AREAS} - {"browser"}
