# SPDX-License-Identifier: Apache-2.0
"""Clock jumps on the server: after the correction locks and refusals end, and no report is missing."""

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.trust import prove_chain
from frankly_server.accounts import Passwords
from frankly_server.intake import Intake, Releasing
from frankly_server.keys.rotation import Rotation, RotationChange
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import WITHHELD_STRATUM, Database
from frankly_server.store.jobs import JobRow
from frankly_server.surveys.definition import parse_definition

from tests.frankly_protocol.samples import question, survey
from tests.frankly_server.accounts.people import CHEAP, PASSWORD, Hands, code, refused
from tests.frankly_server.samples import body, put, report, stored
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
    numbers, intake, releasing = (
        {"aa" * 16: 7, "bb" * 16: 16},
        Intake(database, clock),
        Releasing(database, clock),
    )
    regions = (question("region", "north", "south"),)
    for survey_id, n in numbers.items():
        document = put(database, replace(survey(survey_id=survey_id), strata=regions))
        for i in range(n):
            region = "north" if i % 2 else "south"
            sent = report(document, strata={"region": region}).to_bytes(document.report_length)
            assert intake.accept(survey_id, sent).status == "accepted"

    def left() -> list[list[str]]:
        with database.reading("look") as tx:
            return [sorted(row.strata for row in stored(tx, survey_id)) for survey_id in numbers]

    before = left()
    for days in looks:
        assert left() == before
        clock.at = document.closes + timedelta(days=days)
        releasing.release()
    assert [len(strata) for strata in before] == [7, 16]
    assert left() == ([[], [WITHHELD_STRATUM] * 16] if is_over else before)


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
