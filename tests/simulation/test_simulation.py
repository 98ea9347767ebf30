# SPDX-License-Identifier: Apache-2.0
"""Random histories of a survey: answers, replays, losses, versions, clocks, releases, crashes."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from tests.frankly_server.log.sites import Place
from tests.frankly_server.samples import SURVEY
from tests.simulation.model import SYMBOLS, World

STEPS = 30
Move = Callable[[World, Random], None]


def answer(world: World, draw: Random) -> None:
    if len(world.sealed) < SYMBOLS:
        world.send(world.seal(draw))


def answer_unheard(world: World, draw: Random) -> None:
    if len(world.sealed) < SYMBOLS:
        world.send(world.seal(draw), lost=True)


def replay(world: World, draw: Random) -> None:
    if world.sealed:
        world.send(draw.choice(world.sealed))


def conflict(world: World, draw: Random) -> None:
    if world.sealed:
        world.conflict(draw.choice(world.sealed))


def crash(world: World, draw: Random) -> None:
    if len(world.sealed) < SYMBOLS:
        world.crash(world.seal(draw), after_commit=draw.random() < 0.5)


def crash_in_replay(world: World, draw: Random) -> None:
    if world.sealed:
        world.crash(draw.choice(world.sealed), after_commit=draw.random() < 0.5)


MOVES: dict[str, tuple[int, Move]] = {
    "answer": (30, answer),
    "lost response": (10, answer_unheard),
    "replay": (20, replay),
    "conflict": (8, conflict),
    "crash": (5, crash),
    "crash in replay": (3, crash_in_replay),
    "release": (6, lambda world, _draw: world.release()),
    "crash in a release": (2, lambda world, _draw: world.release(crashing=True)),
    "restart": (3, lambda world, _draw: world.restart()),
    "rotation": (2, lambda world, _draw: world.rotate()),
    "version": (4, lambda world, draw: world.publish(draw.randint(1, 10))),
    "clock": (4, lambda world, draw: world.move_clock(draw.randint(-20, 60))),
    "close": (1, lambda world, _draw: world.move_clock(24 * 12)),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a server with keys and tables, created once."""
    folder = tmp_path_factory.mktemp("template")
    Place.make(folder).services.close()
    return folder


def simulate(seed: int, folder: Path, template: Path) -> Counter[str]:
    """Run one history; a failure names its seed and the moves so far."""
    draw, world, moves = Random(seed), World.make(folder, template), []
    try:
        for _ in range(STEPS):
            [name] = draw.choices(list(MOVES), [weight for weight, _ in MOVES.values()])
            moves.append(name)
            MOVES[name][1](world, draw)
        world.check()
        for report in world.sealed:  # at the end, every device sends once more
            world.send(report)
        world.release()
        world.check()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {moves}") from error
    finally:
        world.services.close()
        shutil.rmtree(folder)
    return Counter(moves) + Counter({"kept": len(world.stored_reports)})


def test_no_history_loses_or_repeats_a_report(template: Path, full: bool) -> None:
    runs = 2000 if full else 50
    happened: Counter[str] = Counter()
    # Files are in memory if possible, because only the process crashes here; tests/faults/server
    # covers disks.
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for seed in range(runs):
            happened += simulate(seed, Path(folder) / "world", template)
    assert set(happened) == {*MOVES, "kept"}
    assert happened["kept"] > 5 * runs


def test_a_double_count_and_a_lost_report_are_detected(tmp_path: Path, template: Path) -> None:
    """If counts are wrong or reports are missing, the model's check fails."""
    for number, harm in enumerate(("doubled", "lost")):
        world, draw = World.make(tmp_path / str(number), template), Random(1)
        for _ in range(5):
            answer(world, draw)
        world.release()
        world.check()
        with world.services.database.transaction("harm") as tx:
            if harm == "lost":
                tx.reports.erase(SURVEY)
            else:
                tx._connection.exec_driver_sql("UPDATE batch_counts SET n = n + 1")
        with pytest.raises(AssertionError):
            world.check()
        world.services.close()
