# SPDX-License-Identifier: Apache-2.0
"""Does the time of an answer tell the answer? The same steps whatever is answered, and a clock that sees no difference.

What a device does is followed opcode by opcode, which no busy machine can disturb; and two answers are drawn in turn,
many times, and the time of each draw is compared with that of its neighbour (THREATS §3.6).
"""

import random
import secrets
import statistics
import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from time import perf_counter_ns
from types import FrameType
from typing import Any

import frankly_protocol
import frankly_sdk
import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism, SubsetMechanism, UnaryMechanism
from frankly_protocol.questions import Question
from frankly_sdk import Answer, Policy
from frankly_sdk._sealing import Row, Sealing
from frankly_sdk.testing import FakeServer, make_survey
from scipy.stats import binomtest

from tests.frankly_protocol.every_kind import KINDS, block
from tests.frankly_protocol.samples import survey
from tests.frankly_sdk import fakes

PLACES = tuple(str(Path(module.__file__ or "").parent) for module in (frankly_sdk, frankly_protocol))
SIZE, BITS = 64, 48
D = 1 << BITS
NEARLY = ((D // 64 * 33, D // 64 * 31), (D // 64 * 31, D // 64 * 33))
"""What is sent leaves anyway, and 1 may take some nanoseconds more to handle than 0. The clock is asked about answers,
so the mechanisms here send almost the same whatever is answered."""


def wide() -> DenseMechanism:
    """Randomised response over 64 answers."""
    mechanism = make_survey({"q": [f"c{i}" for i in range(SIZE)]}).blocks[0].mechanism
    assert isinstance(mechanism, DenseMechanism)
    return mechanism


WIDE = wide()
MAKERS: dict[str, Callable[[], Mechanism]] = {
    "dense": wide,
    "unary": lambda: UnaryMechanism(BITS, SIZE, D // 2, D // 5),
    "subset": lambda: SubsetMechanism(BITS, SIZE, SIZE // 4, D // 2),
    "product": lambda: ProductMechanism((wide(), DenseMechanism(BITS, NEARLY))),
}
LEAST_P = 0.001
CACHE_NS = 10
Draw = Callable[[int], object]
Steps = list[tuple[str, int]]


def steps(action: Callable[[], object]) -> Steps:
    """Every opcode of ours that is executed, in order: the function it stands in, and where."""
    found: Steps = []

    def look(frame: FrameType, event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((*PLACES, __file__)) or "/testing/" in name:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            found.append((frame.f_code.co_qualname, frame.f_lasti))
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        action()
    finally:
        sys.settrace(before)
    return found


def device_steps(document: SurveyDocument, answers: dict[str, str], folder: Path, seed: int) -> Steps:
    """What one device does from the call of `answer` to its end, with random bits that the seed settles."""
    name = "-".join(answers.values())
    server = fakes.FakeServer(document=document)
    source = random.Random(seed)
    policy = Policy(cap="64", max_ceiling=None)
    with server.open(folder / f"{name}-{seed}.db", policy=policy, randbits=source.getrandbits) as client:
        return steps(lambda: client.answer(answers))


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_takes_the_same_steps(kind: str, tmp_path: Path) -> None:
    """From the app's call to the receipt; how often a draw is thrown away is for the random bits alone to decide."""
    document = survey(block(kind, "ldp"))
    names = list(document.questions)
    for seed in range(2):
        seen = [
            device_steps(document, dict(zip(names, chosen, strict=True)), tmp_path, seed)
            for chosen in (("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes"))
        ]
        assert len(seen[0]) > 1000
        assert any("sample" in name for name, _ in seen[0])
        assert all(others == seen[0] for others in seen[1:])


@pytest.mark.parametrize("kind", MAKERS)
def test_every_draw_takes_the_same_steps(kind: str) -> None:
    mechanism, source = MAKERS[kind](), random.Random(1)
    mechanism.sample(0)  # makes ready what all draws share
    for _ in range(4):
        given = [source.getrandbits(BITS * SIZE) for _ in range(40)]

        def bits(count: int, given: list[int] = given, left: list[int] | None = None) -> int:
            assert left is not None
            return given[left.pop()] & (1 << count) - 1

        seen = [
            steps(lambda x=x: mechanism.sample(x, lambda n, left=list(range(40)): bits(n, left=left)))  # type: ignore[misc]
            for x in (0, 1, SIZE // 2, SIZE - 1)
        ]
        assert all(others == seen[0] for others in seen[1:])


def searching(self: Question, choice: str) -> int | None:
    """How a position must not be found."""
    return next((i for i, c in enumerate(self.choices) if c.id == choice), None)


def hurried(self: DenseMechanism, truth: int, randbits: Callable[[int], int] = random.getrandbits) -> int:
    """How a symbol must not be drawn: it stops where it knows."""
    u = randbits(self.bits)
    return next(y for y, end in enumerate(accumulate(self.weights[truth])) if u < end)


@pytest.mark.parametrize(
    ("owner", "name", "wrong"), [(Question, "index", searching), (DenseMechanism, "sample", hurried)]
)
def test_steps_that_depend_on_the_answer_would_be_seen(
    owner: type, name: str, wrong: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    document = make_survey({"q": [f"c{i}" for i in range(SIZE)]})
    server, found = FakeServer(document), []
    for choice in ("c0", "c63"):
        source = random.Random(2)
        with server.open(tmp_path / f"{choice}.db", randbits=source.getrandbits) as client:
            found.append(steps(lambda client=client, choice=choice: client.answer({"q": choice})))  # type: ignore[misc]
    assert found[0] != found[1]


def alternated(draw: Draw, one: int, other: int, times: int) -> list[int]:
    """Nanoseconds that `other` took longer than `one`, in so many pairs; which of them is first is random."""
    order = random.Random(7)
    found = []
    for _ in range(times):
        swapped = order.getrandbits(1)
        first, second = (other, one) if swapped else (one, other)
        start = perf_counter_ns()
        draw(first)
        middle = perf_counter_ns()
        draw(second)
        end = perf_counter_ns()
        found.append((middle - start) - (end - middle) if swapped else (end - middle) - (middle - start))
    return found


def chance(differences: Sequence[float]) -> float:
    """The sign test's p-value: as many pairs to one side as to the other, ties left out."""
    longer, shorter = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return float(binomtest(longer, longer + shorter).pvalue)


def whole_path() -> Draw:
    """From the answer as the app gave it to the bytes that are sealed."""
    document = make_survey({"q": [f"c{i}" for i in range(SIZE)]})
    server = FakeServer(document)
    sealing = Sealing(document, True, False, Policy(), None, server.clock, secrets.randbits)  # type: ignore[arg-type]
    (question,) = document.questions.values()
    rows = [Row("", Answer({question.id: choice.id}), Answer({})) for choice in question.choices]

    def draw(x: int) -> bytes:
        assert rows[x].fault(document) is None
        report = sealing._draw(rows[x])
        assert report is not None
        return report.to_bytes(document.report_length)

    return draw


DRAWS: dict[str, Callable[[], Draw]] = {
    **{kind: lambda make=make: make().sample for kind, make in MAKERS.items()},  # type: ignore[misc]
    "sealed bytes": whole_path,
}
PAIRS = [(0, SIZE - 1), (0, 1), (SIZE // 2, SIZE // 2 + 1)]


def places(name: str, one: int, other: int, devices: int, times: int) -> list[float]:
    """The median difference on each of so many devices, each with its own place in memory, in nanoseconds.

    Where a row happens to lie in memory makes it a few nanoseconds faster or slower than another while the process
    lives. That says nothing about answers in general, so a device counts once, however often it is asked.
    """
    layout, found = random.Random(8), []
    for _ in range(devices):
        holes = [bytes(layout.randrange(1, 4096)) for _ in range(layout.randrange(64))]
        draw = DRAWS[name]()
        del holes[:: 1 + layout.getrandbits(1)]
        alternated(draw, one, other, 20)  # warms what is to be warm
        found.append(statistics.median(alternated(draw, one, other, times)))
    return found


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("name", DRAWS)
def test_two_answers_in_turn_take_the_same_time(name: str, one: int, other: int, full: bool) -> None:
    """100,000 alternations for each pair with --full, and the sign test; otherwise some, and the median alone.

    So many alternations tell a shift of two nanoseconds, which one cache line makes; a report waits a million times as
    long for its random moment. So what the sign test finds counts from ten nanoseconds on.
    """
    medians = places(name, one, other, *((200, 500) if full else (4, 100)))
    shift = abs(statistics.median(medians))
    assert shift < (1000 if full else 5000), "nanoseconds; few alternations on a busy machine are off by some hundreds"
    if full:
        assert chance(medians) > LEAST_P / (len(PAIRS) * len(DRAWS)) or shift < CACHE_NS, shift


def test_an_answer_that_takes_longer_would_be_seen() -> None:
    """The same clock and the same tests on a search that stops where it finds: 64 looks take longer than one."""
    (question,) = make_survey({"q": [f"c{i}" for i in range(SIZE)]}).questions.values()
    differences = alternated(lambda x: searching(question, question.choices[x].id), 0, SIZE - 1, 1000)
    assert chance(differences) < LEAST_P / (len(PAIRS) * len(DRAWS))
    assert statistics.median(differences) > 0
