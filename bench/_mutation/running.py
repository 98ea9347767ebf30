# SPDX-License-Identifier: Apache-2.0
"""Verdicts on mutants: parallel processes, each in its own copy of the repository.

1. Every test file of the sample runs once without a mutant, traced, to record which tests pass,
   their seconds, and the functions that each calls.
2. Each mutant is run first with up to 40 tests that call its function: those of the mirror file
   before others, the fastest first. If the mutant survives, the remaining tests run, up to 20 s of
   tests, or 60 s if the part includes PostgreSQL. For a constant of a file, the tests whose files
   import it run, up to 60 s; for the browser SDK, all tests of the part, up to 200 s. A mutant
   counts as killed if a test fails, or if a run takes more than 4 times the usual seconds of its
   files + 10.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from _mutation import survivors, trees
from _mutation.areas import AREAS, BLIND, Task
from _mutation.child import MARK, OWN_FAILURE, Chosen, fork
from _mutation.mutant import Mutant

MOST_FIRST = 40
MOST_S = 20.0
_START_S = 10.0
_TRACED_LIMIT_S = 900.0
_NO_TESTS = 5
Record = dict[str, Any]


@dataclass
class Results:
    """Verdicts and traced runs in a file of JSON lines, from which an interrupted run resumes.

    A kill is valid while the mutated file is unchanged; a survivor also needs unchanged tests, or
    an entry in survivors.toml.
    """

    path: Path
    verdicts: dict[str, Record] = field(default_factory=dict)
    traced: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Read the file, if it exists; an incomplete last line is ignored."""
        results = cls(path)
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            with suppress(ValueError):
                results._keep(json.loads(line))
        return results

    def add(self, record: Record) -> None:
        """Store a record and append it to the file."""
        self._keep(record)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def _keep(self, record: Record) -> None:
        if "tests_of" in record:
            self.traced[record["tests_of"]] = record
        else:
            self.verdicts[record["id"]] = record


def digest(root: Path, paths: Iterable[str]) -> str:
    """Return a short hash of files."""
    return sha256(b"".join((root / path).read_bytes() for path in paths)).hexdigest()[:16]


class Bench:
    """Runs of a sample, and their results."""

    def __init__(self, root: Path, results: Results, say: Callable[[str], None]) -> None:
        self._root, self._results, self._say = root, results, say
        self._explained = survivors.stored()

    def verdict(self, task: Task) -> Record | None:
        """Return the stored verdict, or None if there is none or it is no longer valid."""
        stored = self._results.verdicts.get(task.mutant.id)
        if stored is None or stored["source"] != digest(self._root, [task.mutant.path]):
            return None
        is_current = stored["tests"] == digest(self._root, task.part.test_files())
        is_due = stored["verdict"] == "survived" and not is_current
        return None if is_due and task.mutant.key not in self._explained else stored

    def run(self, tasks: Sequence[Task], jobs: int) -> None:
        """Run every task until it has a verdict."""
        open_tasks = [task for task in tasks if self.verdict(task) is None]
        if not open_tasks:
            return
        files = dict.fromkeys(name for task in open_tasks for name in task.part.test_files())
        untraced = [name for name in files if not self._is_traced(name)]
        # Pages run in a browser, where calls cannot be traced, so tracing is skipped.
        parts = [part for area in AREAS for part in area.parts]
        traced = {
            name for part in parts if part.paths()[0].endswith(".py") for name in part.test_files()
        }
        with trees.copies(self._root, jobs) as copies:
            pool = _Pool(copies)
            pool.work(
                _Traced(self, name, f"{i + 1}/{len(untraced)}", calls=name in traced)
                for i, name in enumerate(untraced)
            )
            pool.work(_Judged(self, task, i, len(open_tasks)) for i, task in enumerate(open_tasks))

    def _is_traced(self, name: str) -> bool:
        stored = self._results.traced.get(name)
        return stored is not None and stored["digest"] == digest(self._root, [name])

    def say(self, text: str) -> None:
        """Print a line of progress."""
        self._say(text)

    @property
    def root(self) -> Path:
        """Top folder of the measured repository."""
        return self._root

    @property
    def results(self) -> Results:
        """Verdicts and traced runs."""
        return self._results

    def tests(self, task: Task) -> Mapping[str, Record]:
        """Return the tests of a task's part that pass without a mutant, by node id."""
        found: dict[str, Record] = {}
        for name in task.part.test_files():
            found |= self._results.traced[name]["tests"]
        return {name: test for name, test in found.items() if test["ok"] and name not in BLIND}

    def reaching(self, task: Task) -> tuple[list[str], list[str]]:
        """Return the tests that call the mutant's function, for the first run and the second."""
        known = {
            name: test
            for name, test in self.tests(task).items()
            if task.part.on_postgresql or not test["database"]
        }
        reaching = [name for name, test in known.items() if self._reaches(task.mutant, name, test)]
        # If no test calls it (subprocesses are not traced), take all tests of the part.
        tests = {name: float(known[name]["s"]) for name in reaching or known}
        mirror = f"/test_{Path(task.mutant.path).stem.strip('_')}.py::"
        names = sorted(tests, key=lambda name: (mirror not in name, tests[name]))
        first = [name for name in names if not known[name]["database"]][:MOST_FIRST]
        # A constant may affect all of its file, and each database takes seconds to create.
        is_plain = task.mutant.function and not task.part.on_postgresql
        # The functions that a page calls are unknown.
        is_page = task.mutant.path.endswith(".js")
        most_s = 10 * MOST_S if is_page else MOST_S if is_plain else 3 * MOST_S
        others, seconds = [], 0.0
        for name in names:
            if name not in set(first) and seconds + tests[name] <= most_s:
                seconds += tests[name]
                others.append(name)
        return first, others

    def _reaches(self, mutant: Mutant, name: str, test: Record) -> bool:
        if mutant.path.endswith(".js"):
            return True  # pages are not traced
        calls = set(test.get("calls", ()))
        shared = self._results.traced[name.partition("::")[0]]["shared"]
        if not mutant.function:
            return f"{mutant.path}::<module>" in shared or any(
                one.startswith(f"{mutant.path}::") for one in calls
            )
        function = f"{mutant.path}::{mutant.function}"
        return function in calls or function in shared


class _Traced:
    """A traced run of one test file without a mutant."""

    def __init__(self, bench: Bench, name: str, place: str, *, calls: bool) -> None:
        self._bench, self._name, self._place, self._calls = bench, name, place, calls

    def start(self, _tree: Path) -> tuple[Chosen, float, bool]:
        """Return the tests, the limit in seconds, and that calls are recorded."""
        return Chosen((self._name,), calls=self._calls), _TRACED_LIMIT_S, True

    def end(self, tree: Path, outcome: Record, seconds: float) -> bool:
        """Store the outcome; raise RuntimeError if the file cannot be run at all."""
        if "tests" not in outcome or not outcome["tests"]:
            raise RuntimeError(f"{self._name} does not run: {outcome}")
        record = {"tests_of": self._name, "digest": digest(tree, [self._name])}
        self._bench.results.add(record | outcome | {"seconds": round(seconds, 2)})
        failed = [name for name, test in outcome["tests"].items() if not test["ok"]]
        note = (
            f", skipped because they fail without a mutant: {', '.join(failed)}" if failed else ""
        )
        self._bench.say(f"traced {self._place} {self._name} {seconds:.1f} s{note}")
        return True


class _Judged:
    """One mutant: the first tests that reach it, then the others."""

    def __init__(self, bench: Bench, task: Task, i: int, count: int) -> None:
        self._bench, self._task, self._place = bench, task, f"{i + 1}/{count}"
        self._due = [names for names in bench.reaching(task) if names]
        self._is_begun, self._seconds = False, 0.0

    def start(self, tree: Path) -> tuple[Chosen, float, bool]:
        """Write the mutant into the tree; return the next tests and their limit in seconds."""
        if not self._is_begun:
            trees.write(tree, self._task.mutant)
        self._is_begun = True
        names = self._due.pop(0)
        files = dict.fromkeys(name.partition("::")[0] for name in names)
        # Whole files, because the seconds of single tests do not include their shared fixtures.
        usual = sum(float(self._bench.results.traced[file]["seconds"]) for file in files)
        return Chosen(tuple(files), tuple(names)), 4 * usual + _START_S, False

    def end(self, tree: Path, outcome: Record, seconds: float) -> bool:
        """Return False if another run is due; store the verdict otherwise."""
        if outcome["exit"] in (OWN_FAILURE, _NO_TESTS):
            raise RuntimeError(f"{self._task.mutant.key}: {outcome}")
        self._seconds += seconds
        if outcome["exit"] == 0 and self._due:
            return False
        trees.restore(self._bench.root, tree, self._task.mutant)
        # Hashes of the copied files: if tests change during the run, survivors must run again.
        verdict = {0: "survived", -1: "timeout"}.get(outcome["exit"], "killed")
        mutant = self._task.mutant
        self._bench.results.add(
            {
                "id": mutant.id,
                "area": self._task.area.name,
                "path": mutant.path,
                "function": mutant.function,
                "operator": mutant.operator,
                "line": mutant.line,
                "change": mutant.change,
                "verdict": verdict,
                "by": outcome.get("failed", ""),
                "why": outcome.get("message", ""),
                "seconds": round(self._seconds, 2),
                "source": digest(tree, [mutant.path]),
                "tests": digest(tree, self._task.part.test_files()),
            }
        )
        text = f"{verdict} {self._place} {mutant.path} {mutant.function}: {mutant.change[:80]}"
        self._bench.say(f"{text} {self._seconds:.1f} s")
        return True


class _Pool:
    """One run at a time in each tree."""

    def __init__(self, copies: Sequence[Path]) -> None:
        self._free = list(copies)
        self._running: dict[int, tuple[Any, Path, float, float]] = {}

    def work(self, jobs: Iterable[Any]) -> None:
        """Run all jobs; on an exception, kill the processes that are running."""
        waiting = iter(jobs)
        is_done = False
        try:
            while not is_done or self._running:
                while self._free and not is_done:
                    job = next(waiting, None)
                    is_done = job is None
                    if job is not None:
                        self._start(job, self._free.pop())
                self._look()
        finally:
            for pid, (_, tree, *_rest) in self._running.items():
                _end(pid, tree)

    def _start(self, job: Any, tree: Path) -> None:
        chosen, limit_s, trace = job.start(tree)
        pid = fork(tree, chosen, tree.with_suffix(".json"), trace=trace)
        self._running[pid] = job, tree, time.monotonic(), limit_s

    def _look(self) -> None:
        time.sleep(0.02)
        for pid, (job, tree, start, limit_s) in list(self._running.items()):
            seconds = time.monotonic() - start
            has_ended = os.waitpid(pid, os.WNOHANG)[0] == pid
            if not has_ended and seconds <= limit_s:
                continue
            del self._running[pid]
            _end(pid, tree, is_reaped=has_ended)
            report = tree.with_suffix(".json")
            outcome = json.loads(report.read_text()) if report.exists() else {}
            report.unlink(missing_ok=True)
            if not has_ended:
                outcome = {"exit": -1}
            # A process that the mutant has ended (os._exit, a crash) writes no report.
            if job.end(tree, outcome or {"exit": 1, "failed": "the process ended"}, seconds):
                self._free.append(tree)
            else:
                self._start(job, tree)


def _end(pid: int, tree: Path, *, is_reaped: bool = False) -> None:
    """Kill a run and all processes it started, including servers outside its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if not is_reaped:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
    mark = f"{MARK}={tree}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or belongs to another user
            if mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
