# SPDX-License-Identifier: Apache-2.0
"""Timing side channel of an answer: every answer takes the same steps and the same time.

One test traces a device's opcodes, which does not depend on the machine's load. Another test draws
two answers alternately, many times, and measures the time (spec 2.5).
"""

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from types import FrameType
from typing import Any

import frankly_protocol
import frankly_sdk
import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.questions import Question
from frankly_sdk import Policy
from frankly_sdk.testing import FakeServer, make_survey

from tests.faults.turns import BITS, CASES, MAKERS, SIZE, alternated, chance
from tests.frankly_protocol.every_kind import KINDS, block
from tests.frankly_protocol.samples import survey
from tests.frankly_sdk import fakes

PLACES = tuple(
    str(Path(module.__file__ or "").parent) for module in (frankly_sdk, frankly_protocol)
)
LEAST_P = 0.001
Steps = list[tuple[str, int]]


def steps(action: Callable[[], object]) -> Steps:
    """Return the function and position of each executed opcode of our code, in order."""
    executed: Steps = []

    def look(frame: FrameType, event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((*PLACES, __file__)) or "/testing/" in name:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            executed.append((frame.f_code.co_qualname, frame.f_lasti))
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        action()
    finally:
        sys.settrace(before)
    return executed


def device_steps(
    document: SurveyDocument, answers: dict[str, str], folder: Path, seed: int
) -> Steps:
    """Record the steps of one device during a call of `answer`, with seeded random bits."""
    name = "-".join(answers.values())
    server = fakes.FakeServer(document=document)
    source = random.Random(seed)
    policy = Policy(cap="64", max_ceiling=None)
    with server.open(
        folder / f"{name}-{seed}.db", policy=policy, randbits=source.getrandbits
    ) as client:
        return steps(lambda: client.answer(answers))


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_takes_the_same_steps(kind: str, tmp_path: Path) -> None:
    """The steps cover the app's call up to the receipt; only random bits decide how often a draw is
    rejected."""
    document = survey(block(kind, "ldp"))
    names = list(document.questions)
    for seed in range(2):
        runs = [
            device_steps(document, dict(zip(names, chosen, strict=True)), tmp_path, seed)
            for chosen in (("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes"))
        ]
        assert len(runs[0]) > 1000
        assert any("sample" in name for name, _ in runs[0])
        assert all(run == runs[0] for run in runs[1:])


@pytest.mark.parametrize("kind", MAKERS)
def test_every_draw_takes_the_same_steps(kind: str) -> None:
    mechanism, source = MAKERS[kind](), random.Random(1)
    mechanism.sample(0)  # fills the caches that all draws share
    for _ in range(4):
        random_bits = [source.getrandbits(BITS * SIZE) for _ in range(40)]

        def bits(
            count: int, random_bits: list[int] = random_bits, left: list[int] | None = None
        ) -> int:
            assert left is not None
            return random_bits[left.pop()] & (1 << count) - 1

        runs = [
            steps(
                lambda x=x: mechanism.sample(x, lambda n, left=list(range(40)): bits(n, left=left))
            )
            for x in (0, 1, SIZE // 2, SIZE - 1)
        ]
        assert all(run == runs[0] for run in runs[1:])


def searching(self: Question, choice: str) -> int | None:
    """Search that stops at the choice; the test must detect this leak."""
    return next((i for i, c in enumerate(self.choices) if c.id == choice), None)


def hurried(
    self: DenseMechanism, truth: int, randbits: Callable[[int], int] = random.getrandbits
) -> int:
    """Draw that stops early; the test must detect this leak."""
    u = randbits(self.bits)
    return next(y for y, end in enumerate(accumulate(self.weights[truth])) if u < end)


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [(Question, "index", searching), (DenseMechanism, "sample", hurried)],
)
def test_steps_that_depend_on_the_answer_are_detected(
    owner: type,
    name: str,
    wrong: Callable[..., object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    document = make_survey({"q": [f"c{i}" for i in range(SIZE)]})
    server, runs = FakeServer(document), []
    for choice in ("c0", "c63"):
        source = random.Random(2)
        with server.open(tmp_path / f"{choice}.db", randbits=source.getrandbits) as client:
            runs.append(steps(lambda client=client, choice=choice: client.answer({"q": choice})))
    assert runs[0] != runs[1]


@pytest.fixture(scope="module")
def processes(full: bool) -> list[list[float]]:
    """Return median differences by process and case; hashes and memory differ between processes."""
    number, run_arguments = (100, ["2", "500"]) if full else (1, ["4", "100"])
    differences = []
    for seed in range(number):
        command = [sys.executable, "-m", "tests.faults.turns", *run_arguments, str(seed)]
        environment = os.environ | {"PYTHONHASHSEED": str(seed + 1)}
        differences.append(
            json.loads(
                subprocess.run(command, env=environment, check=True, capture_output=True).stdout
            )
        )
    return differences


def searches(choice_a: int, choice_b: int, number: int, times: int) -> list[float]:
    """Return how much longer a search takes that stops at choice b instead of choice a."""
    (question,) = make_survey({"q": [f"c{i}" for i in range(SIZE)]}).questions.values()
    order = random.Random(7)
    return [
        alternated(
            lambda x: searching(question, question.choices[x].id), choice_a, choice_b, times, order
        )
        for _ in range(number)
    ]


def differs(medians: Sequence[float], least: float) -> bool:
    """Whether devices agree that one answer takes longer, by at least `least` nanoseconds.

    Both are needed: 100 devices agree on differences of a nanosecond too, which come from where the
    rows of a table are in memory, are different ones on each machine, and are far below the time of
    a single step.
    """
    return chance(medians) <= LEAST_P / len(CASES) and abs(statistics.median(medians)) >= least


@pytest.fixture(scope="module")
def comparison() -> float:
    """Return the nanoseconds of one comparison of a search, on this machine."""
    return statistics.median(searches(0, SIZE - 1, 50, 100)) / (SIZE - 1)


@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda i: "-".join(map(str, CASES[i])))
def test_two_answers_in_turn_take_the_same_time(
    case: int, processes: list[list[float]], comparison: float, full: bool
) -> None:
    """--full makes 100,000 alternations of each pair, with two devices in each of 100 processes."""
    medians = [process[case] for process in processes]
    shift = abs(statistics.median(medians))
    assert shift < (1000 if full else 5000), (
        "in nanoseconds; with few alternations on a busy machine, the error is a few hundred"
    )
    assert not differs(medians, comparison / 2), (shift, comparison)


@pytest.mark.parametrize("choices", [(0, SIZE - 1), (SIZE // 2, SIZE // 2 + 1), (0, 1)])
def test_an_answer_that_takes_longer_is_detected(
    choices: tuple[int, int], comparison: float
) -> None:
    """The same measurement detects a search that stops at the choice, even one comparison later."""
    assert differs(searches(*choices, 100, 500), comparison / 2)
