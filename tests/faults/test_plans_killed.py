# SPDX-License-Identifier: Apache-2.0
"""SIGKILL after every write of a device that plans, asks and answers: one arm, one plan, one report.

strace logs the writes of one process, those of `commit` included. Between two writes nothing on the
disk changes, so the files after each of them are all states that a kill can leave. A new client
opens each state and continues.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from frankly_protocol.arms import Arm, Arms
from frankly_protocol.asking import Asking
from frankly_protocol.mechanisms.agreement import Plan
from frankly_sdk import AlreadyAnswered
from frankly_sdk.answer import Given

from tests.faults import traced
from tests.frankly_protocol.asked import QUESTIONS, form
from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_sdk.fakes import FakeServer

_SECOND = replace(form(*QUESTIONS, drawn=True), id="second")
_ARMS = (Arm("a", 1 << 15, (), ("affair", "form")), Arm("b", 1 << 15, (), ("second",)))
DOCUMENT = replace(
    survey(ldp_block(epsilon="1")),
    blocks=(ldp_block(epsilon="1"), form(*QUESTIONS, drawn=True), _SECOND),
    arms=Arms("arm", _ARMS),
)
ANSWERS: dict[str, Given] = {
    "affair": "yes",
    "age": 52,
    "work": "yes",
    "stress": "hard",
    "signs": ["pain"],
    "drugs": [],
}
SCRIPT = "from tests.faults.test_plans_killed import live; live()"
SHOWN_FIRST = """
from frankly_sdk._sealing import Sealing
Sealing.plan = lambda self, name: self.arms["a"].planning.shown(self.arms["a"].planning.draw(self.randbits))
"""


def live() -> None:
    """Plan, show the plan, answer and send, as the process that is traced."""
    folder = Path(sys.argv[1])

    def note(name: str, data: bytes) -> None:
        handle = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, data + b"\n")
        os.close(handle)

    class Wire(FakeServer):
        def post(self, url: str, body: bytes, limit: int):  # type: ignore[no-untyped-def]
            note("sent", body)
            return super().post(url, body, limit)

    with Wire(DOCUMENT).open(folder / "s.db") as client:
        plan = client.plan()
        note("shown", json.dumps([plan.arm, plan.questions]).encode())
        assert client.answer(ANSWERS).status == "sent"


@dataclass
class Disk:
    """The files of a folder after a part of the calls."""

    folder: str
    files: dict[str, bytearray] = field(default_factory=dict)

    def states(self, log: Path) -> Iterator[dict[str, bytes]]:
        """Yield the files before the first call and after each that changes them."""
        yield {}
        for call in traced.calls(log):
            if not call.path.startswith(self.folder + "/"):
                continue
            before = self._copy()
            self._apply(call)
            if self._copy() != before:
                yield self._copy()

    def _apply(self, call: traced.Call) -> None:
        name = Path(call.path).name
        if call.name == "openat":
            if "O_CREAT" in call.arguments:
                self.files.setdefault(name, bytearray())
        elif call.name == "pwrite64":
            held = self.files[name]
            held.extend(bytes(max(0, call.offset - len(held))))
            held[call.offset : call.offset + len(call.data)] = call.data
        elif call.name == "write":
            self.files[name] += call.data
        elif call.name == "ftruncate":
            size = int(call.arguments)
            del self.files[name][size:]
            self.files[name].extend(bytes(size - len(self.files[name])))
        elif call.name in ("unlink", "unlinkat"):
            del self.files[name]
        else:
            assert call.name == "fdatasync", call

    def _copy(self) -> dict[str, bytes]:
        return {name: bytes(data) for name, data in self.files.items()}


def lived(folder: Path, before: str = "") -> list[dict[str, bytes]]:
    """Return the states of the files of one device, which a process without a kill left behind."""
    home = folder / "home"
    home.mkdir()
    assert traced.run(folder / "log", before + SCRIPT, str(home)) == 0
    states = list(Disk(str(home)).states(folder / "log"))
    assert states[-1] == {path.name: path.read_bytes() for path in home.iterdir()}
    return states


def continued(state: dict[str, bytes], folder: Path) -> None:
    """Start a device from a state; fail unless there is one plan and one report in all."""
    folder.mkdir()
    for name in ("s.db", "s.db-journal"):
        if name in state:
            (folder / name).write_bytes(state[name])
    shown: list[tuple[str | None, tuple[str, ...]]]
    shown = [_read(line) for line in state.get("shown", b"").splitlines()]
    server = FakeServer(DOCUMENT)
    server.posted += state.get("sent", b"").splitlines()
    with server.open(folder / "s.db") as client:
        try:
            plan = client.plan()
            shown.append((plan.arm, plan.questions))
            assert client.answer(ANSWERS).status == "sent"
        except AlreadyAnswered:
            client.flush()
    assert len(set(shown)) == 1, "a plan that was shown was drawn again"
    assert len(set(server.posted)) == 1, "two reports"
    report = json.loads(server.posted[0])
    view, symbol = DOCUMENT.views[report["strata"]["arm"]], report["y"][-1]
    plan_sent = Plan(symbol[0], tuple(symbol[1::2]))
    asked = Asking(view.blocks).asked({view.blocks[-1].id: plan_sent})
    told = (view.arm, tuple(one.id for one in asked))
    assert told == shown[0], "the report is not about what was asked"


def _read(line: bytes) -> tuple[str | None, tuple[str, ...]]:
    arm, questions = json.loads(line)
    return arm, tuple(questions)


def test_killed_after_any_write_there_is_one_plan_and_one_report(
    full: bool, tmp_path: Path
) -> None:
    """Every state of 12 devices with --full, of one otherwise."""
    for device in range(12 if full else 1):
        home = tmp_path / f"device {device}"
        home.mkdir()
        states = lived(home)
        assert len(states) > 50
        for number, state in enumerate(states):
            continued(state, home / str(number))


def test_a_plan_that_is_shown_before_it_is_stored_is_detected(tmp_path: Path) -> None:
    states = lived(tmp_path, SHOWN_FIRST)
    with pytest.raises(AssertionError, match="drawn again"):
        for number, state in enumerate(states):
            continued(state, tmp_path / str(number))
