# SPDX-License-Identifier: Apache-2.0
"""Clock jumps on the server: after the correction locks and refusals end, and no report is missing."""

import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.trust import prove_chain
from frankly_server.accounts import Passwords
from frankly_server.intake import Intake, Releasing
from frankly_server.keys.rotation import Rotation, RotationChange
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import WITHHELD_STRATUM, Database, StoreUnavailable
from frankly_server.store.jobs import JobRow
from frankly_server.surveys.definition import parse_definition

from tests.frankly_protocol.samples import question, survey
from tests.frankly_server.accounts.people import CHEAP, PASSWORD, Hands, code, refused
from tests.frankly_server.samples import body, put, report, stored
from tests.frankly_server.store.kinds import on_sqlite
from tests.frankly_server.surveys.samples import FILE

DAY_S = 24 * 3600
EMAIL = "ada@example.org"


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def services(database: Database, tmp_path: Path, clock: Hands) -> Services:
    """Services on a migrated database, with keys from a week ago, an account and a draft."""
    services = Services(Settings(home=tmp_path), database, clock, Passwords(CHEAP))
    clock.wait(-7 * DAY_S)
    services.keys.init()
    clock.wait(7 * DAY_S)
    services.accounts.create("main", EMAIL, "owner", PASSWORD)
    services.surveys.apply(parse_definition(FILE.encode()))
    return services


def test_a_lock_set_by_a_clock_ahead_ends_when_the_clock_is_corrected(
    services: Services, clock: Hands
) -> None:
    clock.wait(DAY_S)
    for _ in range(5):
        refused(services.accounts.sign_in, EMAIL, "wrong")
    refused(services.accounts.sign_in, EMAIL, PASSWORD)
    clock.wait(-DAY_S)
    assert services.accounts.sign_in(EMAIL, PASSWORD).person.email == EMAIL
    # A lock set at the correct time lasts one minute, and not longer if the clock goes back by
    # seconds.
    for _ in range(5):
        refused(services.accounts.sign_in, EMAIL, "wrong")
    clock.wait(-30)
    refused(services.accounts.sign_in, EMAIL, PASSWORD)
    clock.wait(90)
    assert services.accounts.sign_in(EMAIL, PASSWORD).person.email == EMAIL


def test_a_lock_of_the_second_factor_ends_too(services: Services, clock: Hands) -> None:
    person = services.accounts.sign_in(EMAIL, PASSWORD).person
    services.second_factors.begin_totp(person, PASSWORD)
    secret = services.second_factors.state(person).new_secret
    assert secret is not None
    services.second_factors.confirm_totp(person, code(secret, int(clock.now().timestamp())))

    def waiting() -> str:
        with pytest.raises(Exception, match="second factor") as waits:
            services.accounts.sign_in(EMAIL, PASSWORD)
        return str(waits.value.token)  # type: ignore[attr-defined]

    clock.wait(DAY_S)
    token = waiting()
    for _ in range(5):
        refused(services.second_factors.finish, token, "000000")
    refused(services.second_factors.finish, token, code(secret, int(clock.now().timestamp())))
    clock.wait(-DAY_S + 60)
    now = code(secret, int(clock.now().timestamp()))
    assert services.second_factors.finish(waiting(), now).person.email == EMAIL


def test_sessions_end_early_or_late_but_end(services: Services, clock: Hands) -> None:
    token = services.accounts.sign_in(EMAIL, PASSWORD).token
    clock.wait(DAY_S)
    assert services.accounts.person(token) is None
    ahead = services.accounts.sign_in(EMAIL, PASSWORD).token
    clock.wait(-DAY_S)
    assert services.accounts.person(ahead) is not None
    clock.wait(DAY_S + 9 * 3600)
    assert services.accounts.person(ahead) is None


def test_a_job_started_by_a_clock_ahead_blocks_nothing(services: Services, clock: Hands) -> None:
    """The job's process died, but by the corrected clock the job would look recent for a day."""
    survey = services.surveys.list()[0].survey_id
    clock.wait(DAY_S)
    updated = f"{clock.now():%Y-%m-%dT%H:%M:%SZ}"
    with services.database.transaction("a job") as tx:
        tx.jobs.add(JobRow("ab" * 16, survey, "running", 0, 1, "", updated))
    assert refused(services.jobs.start, survey).code == "immutable"
    clock.wait(-DAY_S)
    assert services.jobs.get(survey, "ab" * 16).state == "failed"
    job = services.jobs.start(survey)
    deadline = time.monotonic() + 60
    while services.jobs.get(survey, job).state == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert services.jobs.get(survey, job).state == "done"


def test_keys_created_by_a_clock_ahead(services: Services, clock: Hands, tmp_path: Path) -> None:
    clock.wait(DAY_S)
    services.keys.init(force=True)
    clock.wait(-DAY_S)
    problem = refused(services.check_start)
    assert "the keys are valid from" in problem.detail
    assert "set the clock; if it is right, sign a new version with `frankly keys rotate`" in (
        problem.detail
    )
    assert Rotation(services.keys, clock).propose(RotationChange()).in_force
    services.check_start()
    assert prove_chain(services.keys.chain(), None, clock.now()).keys.version == 2


def test_a_survey_published_by_a_clock_ahead(services: Services, clock: Hands) -> None:
    clock.wait(DAY_S)
    ahead = services.surveys.publish("habits")
    clock.wait(-DAY_S)
    (warning,) = [text for text in services.surveys.obstacles("habits") if "dated" in text]
    assert "Set the clock; if it is right, publish again" in warning
    again = services.surveys.publish("habits")
    assert (again.status, again.version) == ("published", ahead.version + 1)
    assert not [text for text in services.surveys.obstacles("habits") if "dated" in text]
    assert services.surveys.publish("habits").status == "unchanged"


@on_sqlite
@pytest.mark.parametrize(
    ("looks", "is_over"),
    [
        # (days after the close of each release), and whether the last one is the survey's last.
        ((400,), False),
        ((400, 400.01), False),
        ((400, 400.95), False),
        ((1, 2), True),
        ((1, 1.9, 2), True),
        ((1, 3.9), True),  # some rounds were skipped
        ((1, 4), True),
        ((1, 8), True),  # a server of weekends
        ((1, 30), False),  # a long stop, or a second wrong clock
        ((1, 30, 31), True),
        ((400, 800), False),
        ((400, -20, 401), False),  # right in between
        (
            (400, 1, 2),
            True,
        ),  # right afterwards, when the survey was over: two looks of the right clock
        ((400, 1, 1.5), False),
        ((0.9, 1.9), False),
        ((0.9, 1.9, 2.9), True),
    ],
)
def test_a_clock_ahead_is_not_the_end_of_a_survey(
    database: Database, clock: Hands, looks: tuple[float, ...], is_over: bool
) -> None:
    """Only the last release deletes a remainder below the step, and strips strata of small cells."""
    closes, releasing = answered(database, clock), Releasing(database, clock)
    before = left(database)
    for days in looks:
        assert left(database) == before
        clock.at = closes + timedelta(days=days)
        releasing.release()
    assert left(database) == (OVER if is_over else before)


NUMBERS = {"aa" * 16: 7, "bb" * 16: 16}
OVER = [[], [WITHHELD_STRATUM] * 16]


def answered(database: Database, clock: Hands) -> datetime:
    """Store reports of two surveys, of two regions with fewer than a step each; return their end."""
    regions = (question("region", "north", "south"),)
    for survey_id, n in NUMBERS.items():
        document = put(database, replace(survey(survey_id=survey_id), strata=regions))
        for i in range(n):
            region = "north" if i % 2 else "south"
            sent = report(document, strata={"region": region}).to_bytes(document.report_length)
            assert Intake(database, clock).accept(survey_id, sent).status == "accepted"
    assert [len(strata) for strata in left(database)] == [7, 16]
    return document.closes


def left(database: Database) -> list[list[str]]:
    """Return the strata of the stored reports of each survey."""
    with database.reading("look") as tx:
        return [sorted(row.strata for row in stored(tx, survey_id)) for survey_id in NUMBERS]


@on_sqlite
@pytest.mark.parametrize(
    "wrong_days",
    [
        (400, 400),  # the same error twice
        (400, 401),  # two errors a day apart
        (400, 402.5),
        (40, 39),
    ],
)
@pytest.mark.parametrize("minutes_apart", [5, 24 * 60, 25 * 60])
@pytest.mark.parametrize("is_failing", [False, True])
def test_a_running_server_notices_that_its_clock_is_set(
    database: Database,
    clock: Hands,
    wrong_days: tuple[float, float],
    minutes_apart: int,
    is_failing: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two looks at a wrong clock can be a day apart by that clock, or really, and prove nothing."""
    answered(database, clock)
    real, before = clock.at.replace(hour=9), left(database)
    start = real

    def seconds() -> float:
        return (real - start).total_seconds()

    releasing = Releasing(database, clock, timer=seconds)

    def look(error_days: float = 0.0) -> None:
        clock.at = real + timedelta(days=error_days)
        releasing.check()

    look()
    for days in wrong_days:
        real += timedelta(seconds=10)
        look(days)  # a release time lies between the right and the wrong time
        real += timedelta(seconds=10)
        with monkeypatch.context() as context:
            if is_failing:  # the server's first look at the corrected clock fails
                context.setattr(database, "reading", unavailable)
            look()
        real += timedelta(seconds=10)
        look()
        assert left(database) == before
        real += timedelta(minutes=minutes_apart)
        clock.at = real
        look()
    assert left(database) == before
    assert real.day < 5


@on_sqlite
@pytest.mark.parametrize("is_failing", [False, True])
def test_a_wrong_clock_that_is_set_begins_again(
    database: Database, clock: Hands, is_failing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(database, clock)
    real, before = clock.at, left(database)
    start = real

    def seconds() -> float:
        return (real - start).total_seconds()

    releasing = Releasing(database, clock, timer=seconds)
    for days, minutes in ((400, 1), (401, 2), (401, 13 * 60)):
        real = start + timedelta(minutes=minutes)
        clock.at = real + timedelta(days=days)
        with monkeypatch.context() as context:
            if is_failing and minutes == 2:
                context.setattr(database, "reading", unavailable)
            releasing.check()
    assert left(database) == before


def unavailable(name: str) -> NoReturn:
    raise StoreUnavailable(name)


@on_sqlite
def test_a_note_of_another_process_is_forgotten_at_the_next_hour(
    database: Database, clock: Hands
) -> None:
    """`frankly release --now`, twice, on a machine whose clock is wrong."""
    closes, real = answered(database, clock), clock.at.replace(hour=9)
    start, right, before = real, Hands(), left(database)
    right.at = real

    def seconds() -> float:
        return (real - start).total_seconds()

    server = Releasing(database, right, timer=seconds)
    for days in (0, 1):
        clock.at = closes + timedelta(days=10 + days)
        Releasing(database, clock).release()
        assert left(database) == before
        for _ in range(370):
            real += timedelta(seconds=10)
            right.at = real
            server.check()
    assert left(database) == before


def test_a_running_server_makes_the_last_release(database: Database, clock: Hands) -> None:
    """Also if the machine sleeps each night, and its clock is corrected by some seconds."""
    closes = answered(database, clock)
    start = clock.at
    releasing = Releasing(
        database, clock, timer=lambda: (clock.at - start).total_seconds() * (1 + 1e-5)
    )
    before, ends = left(database), closes + timedelta(days=1)
    clock.at = ends - timedelta(days=1)
    releasing.check()
    while clock.at < ends + timedelta(days=3):
        clock.at += timedelta(hours=8 if clock.at.hour > 20 else 0, seconds=600)
        releasing.check()
        if clock.at < ends + timedelta(hours=23):
            assert left(database) == before
    assert left(database) == OVER


def test_reports_of_a_clock_that_is_behind_are_early_not_refused(
    services: Services, clock: Hands
) -> None:
    """Devices keep a report that is too early, but erase a report that is refused."""
    published = services.surveys.publish("habits")
    (document,) = services.surveys.versions("habits")
    report = body(document, 0, 0)
    clock.wait(-DAY_S)
    with pytest.raises(InvalidInput) as early:
        services.intake.accept(published.survey_id, report)
    assert early.value.code == "too_early"
    assert 0 < early.value.retry_after_s <= DAY_S  # type: ignore[attr-defined]
    clock.wait(DAY_S)
    assert services.intake.accept(published.survey_id, report).status == "accepted"
    # With the clock a day ahead and then back, the report is stored once at any time.
    for seconds in (DAY_S, -DAY_S):
        clock.wait(seconds)
        assert services.intake.accept(published.survey_id, report).status == "duplicate"
    assert clock.now() + timedelta(days=1) < document.closes
