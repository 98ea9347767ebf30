# SPDX-License-Identifier: Apache-2.0
"""Each bench prints one JSON object with --json, here at small counts, without browsers and servers.

What assembles a result runs as in a real run: a number or a truth value of NumPy in it would be an
exception after hours of measuring.
"""

import importlib
import json
import pickle
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import MagicMock

import numpy as np
import pytest

Patched = dict[str, Any]
"""Values by their name in the bench."""


class InProcess:
    """A pool of processes without processes; work and results are pickled as in a real one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[[Any], Any], jobs: Iterable[Any]) -> Iterator[Any]:
        for job in jobs:
            yield pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(job)))))


def analyst(bench: Any) -> Patched:
    cases = bench._cases()[:2]
    return {
        "ProcessPoolExecutor": InProcess,
        "_cases": lambda: cases,
        "seconds": lambda: {"model_of_1_million_s": [0.5, 0.6]},
    }


def browser(_: Any) -> Patched:
    playwright = MagicMock()
    page = playwright.return_value.__enter__.return_value.chromium.launch.return_value.new_page
    timings = {name: [3.0, 2.0, 1.0] for name in ("read", "ours", "plain")}
    page.return_value.evaluate.return_value = timings
    return {"sync_playwright": playwright}


def estimate(bench: Any) -> Patched:
    cases, shipped = bench.cases()[6:7], bench.shipped
    answers = cases[0].mechanism.answers
    one = shipped.Shipped(cases[0].name, cases[0].mechanism, None, (answers,), shipped.USUAL)
    return {
        "cases": lambda: cases,
        "_grid": lambda runs, _: list(islice(bench.grid.cells(one, runs, seed=0), 12)),
    }


def form(bench: Any) -> Patched:
    return {
        "ProcessPoolExecutor": InProcess,
        "_TABLE": bench._TABLE[:1],
        "_SMALL": [],
        "_PAIRS": [(2, 2, "1", 1e6)],
        "_ordinal": lambda: [bench._distribution, partial(bench._mean, 3, "1")],
        "_even": lambda: [partial(bench._near_the_bound, 2, 2, "1")],
        "_drawn": lambda number: [([(2, 1.0), (3, 0.5)], "1.00")],
        "_single": lambda: [
            partial(bench._prior, 3, "1", "shares"),
            partial(bench._wish, 3, "1", "mean"),
        ],
        "FORMS": [("2×2", bench.even([2, 2]), "1", bench.FORMS[0][-1])],
    }


def hosted_page(_: Any) -> Patched:
    seen = {"first": 1.0, "interactive": 2.0, "longest": 3.0, "requests": 4, "kb": 5.0}
    return {
        "sync_playwright": MagicMock(),
        "hosted": nullcontext,
        "_visit": lambda *_, **__: seen,
        "_traced": lambda *_: (1.0, 2.0),
    }


def intake(bench: Any) -> Patched:
    trials = {name: [bench.load.Loaded(9.0, 0.1, 0.2, 0.01)] for name in ("ours", "plain", "bare")}
    return {
        "measure": lambda kind, blocks, *_: bench._figures(f"{kind}_{blocks}_1", trials),
        "beside_planning": lambda kind, _: {f"beside_{kind}_4_refused": [0.0]},
    }


def mutation(bench: Any) -> Patched:
    area = bench.AREAS[0]
    task = SimpleNamespace(area=area, mutant=SimpleNamespace(id="a", key=("", "", "", "")))
    running = SimpleNamespace(
        run=MagicMock(), results=SimpleNamespace(verdicts={"a": {"verdict": "survived"}})
    )
    return {
        "sample": lambda *_: [task],
        "Bench": lambda *_: running,
        "Results": MagicMock(),
        "child": MagicMock(),
        "signal": MagicMock(),
    }


def scale(_: Any) -> Patched:
    return {"grown": lambda *_, **__: {"ratio_memory": [1.0], "crosstab_many_s": [3.0]}}


def sdk(_: Any) -> Patched:
    return {
        "environment": lambda _: None,
        "_imports": lambda _: {"ratio_import_dependencies": [1.0], "ratio_import_with_http": [1.0]},
        "reports": lambda _: {"open_s": [0.1]},
        "SIZES": (2,),
        "CALLS": 1,
        "ROUNDS": 1,
    }


def split(bench: Any) -> Patched:
    ballots = list(islice(bench.split.ballots(), 2))
    return {"_ballots": lambda: ballots}


def validity(bench: Any) -> Patched:
    cells = list(islice(bench.surveys.same_report(), 2))
    blocks, forms = islice(bench.anchored.in_blocks(), 1), islice(bench.anchored.in_forms(), 1)
    return {
        "_same_report": lambda: cells,
        "_forms": lambda: cells[:1],
        "_in_blocks": lambda: blocks,
        "_in_forms": lambda: forms,
    }


def verify(_: Any) -> Patched:
    row = {"case": "a", "n": 1}
    row |= {f"{name}_{kind}": 0.1 for name in ("python", "node") for kind in ("s", "read_s")}
    limits = SimpleNamespace(
        judged=lambda: ([row], [row]), opened=lambda: {"gap_srlip_2^8_worker_ms": [1.0]}
    )
    return {"turns": lambda trials, _: {trial: [0.1] for trial in trials}, "limits": limits}


def unchanged(_: Any) -> Patched:
    return {}


BENCHES: dict[str, tuple[Callable[[Any], Patched], str]] = {
    "analyst": (analyst, "--runs 2"),
    "browser": (browser, ""),
    "design": (unchanged, "--quick --items 5"),
    "estimate": (estimate, "--part coverage --runs 2 --grid-runs 2"),
    "form": (form, ""),
    "growth": (unchanged, "--quick --panel verify"),
    "hosted_page": (hosted_page, ""),
    "intake": (intake, ""),
    "mutation": (mutation, ""),
    "scale": (scale, "--on sqlite --reports 10"),
    "sdk": (sdk, ""),
    "sizing": (unchanged, "--reports 1000"),
    "split": (split, "--surveys 20"),
    "validity": (validity, "--surveys 20"),
    "verify": (verify, ""),
}
"""What replaces measurements, and options, by bench."""


@pytest.fixture
def printed(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Return a function that runs a bench with --json and returns its result."""
    monkeypatch.syspath_prepend(str(root / "bench"))

    def run(name: str, **others: Any) -> Any:
        replace, options = BENCHES[name]
        monkeypatch.setattr(sys, "argv", [name, "--json", *options.split()])
        if name == "sizing":
            runpy.run_path(str(root / "bench" / "sizing.py"), run_name="__main__")
            return read(capsys.readouterr().out)
        bench: Any = importlib.import_module(name)
        for attribute, value in (replace(bench) | others).items():
            monkeypatch.setattr(bench, attribute, value)
        # The main function of benches without further options is that of `_runner`.
        given = () if bench.main.__module__ == name else (bench.__doc__, bench.measure)
        try:
            bench.main(*given)
        except SystemExit as left:
            assert left.code in (0, 1)
        return read(capsys.readouterr().out)

    return run


def read(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_no_bench_is_forgotten(root: Path) -> None:
    assert set(BENCHES) == {path.stem for path in (root / "bench").glob("[a-z]*.py")}


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_prints_json(printed: Callable[..., Any], name: str) -> None:
    body = printed(name)
    assert body.get("bench", name) == name
    assert isinstance(body.get("holds", True), bool)


def test_a_truth_value_of_numpy_is_found(printed: Callable[..., Any]) -> None:
    bench: Any = importlib.import_module("form")
    row = bench.Row(1, "", 1.0, None, None, 0.1, "", 1.0, None, "", np.bool_(True))
    with pytest.raises(TypeError, match="bool"):
        printed("form", measured=lambda *, quick: [row])
