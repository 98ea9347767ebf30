# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of the code for trust, data and estimates: one small error at a time.

The bench runs a seeded sample of mutants (`_mutation/areas.py`: areas, their files and tests), one
of each file in turn, each in a copy of the repository. `_mutation/survivors.toml` explains every
survivor as `equivalent` or `harmless`; acceptance, ledger, erasure, roles and estimates may have no
harmless survivors. Exits 1 if a survivor is not explained. Verdicts are stored in `.mutation/`: an
interrupted run resumes, and after new tests only unexplained survivors run again.

No library is used, for these reasons. mutmut (3.8) selects tests and forks, as this bench does, but
mutates only functions, keeps all mutants of a file in one file, which breaks tests that compare or
start sources, and runs all mutants instead of a seeded sample by area. cosmic-ray accepts a sample
and any command, but starts an interpreter for each mutant: 2.5 s here before the first test,
against 0.5 in a fork. Neither supports JavaScript, or a list of survivors identified by the text of
their line instead of its number. The drawback is that we maintain the operators, 200 lines per
language.
"""

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _mutation import child
from _mutation.areas import AREAS, Task, sample
from _mutation.running import Bench, Record, Results
from _mutation.survivors import Survivor, entry, stored
from _runner import Result, load, markdown, once, print_result

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".mutation" / "results.jsonl"
SEED, QUICK, COUNTED = 22, 60, 600
JOBS = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sample and print the verdicts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [area.name for area in AREAS]
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK} mutants only, none of them in JavaScript"
    )
    parser.add_argument("--most", type=int, help="largest number of mutants")
    parser.add_argument("--area", choices=names, action="append", help="these areas only")
    parser.add_argument("--seed", type=int, default=SEED, help=f"draws the sample ({SEED})")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"processes at once ({JOBS})")
    parser.add_argument("--fresh", action="store_true", help="forget the verdicts of earlier runs")
    options = parser.parse_args(arguments)
    # Like Ctrl-C, end running tests and remove their copies of the repository.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    before = load()
    if options.fresh:
        KEPT.unlink(missing_ok=True)
    areas = [area for area in AREAS if not options.area or area.name in options.area]
    tasks = sample(ROOT, options.seed, areas)
    tasks = _quick(tasks) if options.quick else tasks[: options.most]
    child.warm()
    bench = Bench(ROOT, Results.read(KEPT), _say)
    bench.run(tasks, options.jobs)
    verdicts = [(task, bench.results.verdicts[task.mutant.id]) for task in tasks]
    is_whole = not (options.quick or options.most or options.area)
    found = result(verdicts, stored(), is_whole=is_whole, seed=options.seed)
    if not options.json:
        _print(found, verdicts)
    print_result(found, as_json=options.json, before=before)


def _quick(tasks: Sequence[Task]) -> list[Task]:
    """Return mutants of each area's parts with the fewest test files, all of which are first traced.

    Mutants of the browser SDK are omitted, because their tests take minutes.
    """
    areas = [area for area in AREAS if area.name != "browser"]
    chosen: list[Task] = []
    for i, area in enumerate(areas):
        mine = [task for task in tasks if task.area is area]
        due = (QUICK - len(chosen)) // (len(areas) - i)
        chosen += sorted(mine, key=lambda task: len(task.part.test_files()))[:due]
    return chosen


def result(
    verdicts: Sequence[tuple[Task, Record]],
    survivors: Mapping[tuple[str, str, str, str], Survivor],
    *,
    is_whole: bool,
    seed: int = SEED,
) -> Result:
    """Return the figures of all areas, and the rows of each."""
    kinds = [(task, _kind(task, record, survivors)) for task, record in verdicts]
    rows = []
    for area in AREAS:
        count = Counter(kind for task, kind in kinds if task.area is area)
        if count:
            rows.append({"area": area.name, "mutants": count.total()} | _named(count))
    total = Counter(kind for _, kind in kinds)
    harmless = sum(kind == "harmless" and task.area.is_strict for task, kind in kinds)
    figures = {"mutants": total.total(), **_named(total), "harmless_where_none_may_be": harmless}
    figures["without_equivalent"] = total.total() - total["equivalent"]
    return Result(
        "mutation",
        once({name: float(value) for name, value in figures.items()}),
        at_most={"unexplained": 0, "harmless_where_none_may_be": 0},
        at_least={"without_equivalent": COUNTED} if is_whole else {},
        extra={"seed": seed, "areas": rows, "part": not is_whole},
    )


def _kind(
    task: Task, record: Record, survivors: Mapping[tuple[str, str, str, str], Survivor]
) -> str:
    if record["verdict"] != "survived":
        return str(record["verdict"])
    known = survivors.get(task.mutant.key)
    return known.kind if known else "unexplained"


def _named(count: Counter[str]) -> dict[str, Any]:
    killed = {"killed": count["killed"] + count["timeout"]}
    return killed | {name: count[name] for name in ("equivalent", "harmless", "unexplained")}


def _print(found: Result, verdicts: Sequence[tuple[Task, Record]]) -> None:
    print("\n".join(markdown(found.extra["areas"])), end="\n\n")
    known = stored()
    for task, record in verdicts:
        if record["verdict"] == "survived" and task.mutant.key not in known:
            print(f"# {task.area.name}: {task.mutant.operator}\n{entry(task.mutant.key)}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
