# SPDX-License-Identifier: Apache-2.0
"""Operations on a survey in the field: publishing in the background, releases, invitations, webhook."""

from frankly_protocol.clock import format_time
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import BaseModel

from frankly_server.intake.times import next_release
from frankly_server.store.jobs import JobRow
from frankly_server.surveys.jobs import problem_of, published_by
from frankly_server.web import actions, reading
from frankly_server.web.admin.invitations import personal_link
from frankly_server.web.management import models
from frankly_server.web.management.operations import Call, Operations, Reply
from frankly_server.web.openapi import ProblemDetails


def add_to(api: Operations) -> None:
    """Add the operations."""
    _add_jobs(api)
    _add_releases(api)
    _add_invitations(api)
    _add_webhook(api)


def _add_jobs(api: Operations) -> None:
    @api.add(
        "POST",
        "/v1/surveys/<survey_id>/jobs",
        "publish",
        role="admin",
        answer=(202, "The job that publishes the draft.", models.PublishingJob),
        headers={"Location": "The job's address."},
        problems=(Problem.CLOSED, Problem.IMMUTABLE),
    )
    def publish(call: Call) -> Reply:
        """Publish the draft as the next version, in the background; `Location` is the job's address.

        Nothing is published if the newest version has the same definition.
        """
        job_id = actions.publish(call.services, call.by, call.survey)
        job = _job(call.services.jobs.get(call.survey.id, job_id))
        return Reply(job, {"Location": f"/v1/surveys/{call.survey.id}/jobs/{job_id}"})

    @api.add(
        "GET",
        "/v1/surveys/<survey_id>/jobs/<job_id>",
        "job",
        role="analyst",
        answer=(200, "The job and its progress.", models.PublishingJob),
        problems=(Problem.NOT_FOUND,),
    )
    def job(call: Call, job_id: str) -> BaseModel:
        """Return a publishing job: its progress, the published version, or why it failed."""
        return _job(call.services.jobs.get(call.survey.id, job_id))

    @api.add(
        "POST",
        "/v1/surveys/<survey_id>/jobs/<job_id>/cancel",
        "cancel_job",
        role="admin",
        answer=(200, "The job as it is now.", models.PublishingJob),
        problems=(Problem.NOT_FOUND,),
    )
    def cancel(call: Call, job_id: str) -> BaseModel:
        """Ask a publishing job to stop, which it does within a second unless it has ended."""
        actions.cancel(call.services, call.by, call.survey, job_id)
        return _job(call.services.jobs.get(call.survey.id, job_id))


def _job(row: JobRow) -> models.PublishingJob:
    digest, is_new = published_by(row) if row.state == "done" else (None, None)
    problem = problem_of(row)
    return models.PublishingJob(
        job=row.id,
        state=row.state,
        done=row.done,
        total=row.total,
        block=row.detail or None if row.state in ("running", "cancelling") else None,
        digest=digest,
        is_new=is_new,
        problem=None if problem is None else ProblemDetails.model_validate(problem),
        updated=row.updated,
    )


def _add_releases(api: Operations) -> None:
    @api.add(
        "GET",
        "/v1/surveys/<survey_id>/releases",
        "releases",
        role="analyst",
        answer=(200, "Released reports by day.", models.Releases),
    )
    def releases(call: Call) -> BaseModel:
        """Return how many reports were released on which day, and the time of the next release."""
        services, survey = call.services, call.survey
        days, now = services.intake.released_by_day(survey.id), services.surveys.now()
        times = [
            next_release(one.release_every, now)
            for one in services.surveys.open_versions(survey.id)
        ]
        return models.Releases(
            next=format_time(min(times)) if times else None,
            n=sum(days.values()),
            days=[models.ReleasedDay(day=day, reports=n) for day, n in days.items()],
        )

    @api.add(
        "POST",
        "/v1/surveys/<survey_id>/releases",
        "release",
        role="admin",
        answer=(200, "The number of released reports.", models.Released),
        problems=(Problem.IMMUTABLE,),
    )
    def release(call: Call) -> BaseModel:
        """Release pending reports now, in full batches, instead of at the next published time.

        Not within an hour of another release, past or published: two in short order would tell when
        the reports between them arrived. So it is never possible for surveys that release every hour.
        """
        return models.Released(released=actions.release(call.services, call.by, call.survey))


def _add_invitations(api: Operations) -> None:
    @api.add(
        "POST",
        "/v1/surveys/<survey_id>/invitations",
        "make_invitations",
        role="admin",
        answer=(201, "The codes and personal links.", models.Invitations),
        problems=(Problem.IMMUTABLE, Problem.FIELD_MISSING, Problem.FIELD_UNKNOWN),
        body={reading.JSON: models.InvitationsRequest},
    )
    def make(call: Call) -> BaseModel:
        """Make invitations, each for one report. They are shown once.

        Whoever knows who got which code, and when it was used, can link people to noisy reports.
        """
        sent = call.read(models.InvitationsRequest)
        link, source = actions.require_invites(call.services, call.survey), sent.source or ""
        codes = actions.make_invitations(call.services, call.by, call.survey, sent.count, source)
        return models.Invitations(
            invitations=[
                models.Invitation(code=code, link=personal_link(link, code, source))
                for code in codes
            ]
        )

    @api.add(
        "POST",
        "/v1/surveys/<survey_id>/invitations/revoke",
        "revoke_invitations",
        role="admin",
        answer=(204, "What was unused is revoked.", None),
        body={reading.JSON: models.RevokeInvitationsRequest},
    )
    def revoke(call: Call) -> None:
        """Revoke an invitation, or all, as far as they are unused.

        The answer is the same for a used invitation: it does not tell whether somebody has answered.
        """
        sent = call.read(models.RevokeInvitationsRequest)
        if (sent.code is None) is not sent.all:
            problem = Problem.UNSUPPORTED if sent.all else Problem.FIELD_MISSING
            raise InvalidInput(problem, "send either a code, or all with the value true", "code")
        if sent.code is not None and sent.source is not None:
            raise InvalidInput(
                Problem.UNSUPPORTED, "a code is of one source: leave this out", "source"
            )
        actions.revoke_invitations(
            call.services, call.by, call.survey, sent.code, sent.source or ""
        )


def _add_webhook(api: Operations) -> None:
    path = "/v1/surveys/<survey_id>/webhook"

    @api.add(
        "GET",
        path,
        "webhook",
        role="admin",
        answer=(200, "The address and its deliveries.", models.WebhookSettings),
    )
    def webhook(call: Call) -> BaseModel:
        """Return a survey's address for notifications, and what was delivered to it."""
        return _webhook(call)

    @api.add(
        "PUT",
        path,
        "set_webhook",
        role="admin",
        answer=(200, "The address and its new secret.", models.WebhookSettings),
        body={reading.JSON: models.WebhookRequest},
    )
    def set_webhook(call: Call) -> BaseModel:
        """Set a survey's address for notifications; the new secret is shown once."""
        url = call.read(models.WebhookRequest).url
        return _webhook(call, actions.set_webhook(call.services, call.by, call.survey, url))

    @api.add("DELETE", path, "remove_webhook", role="admin", answer=(204, "Removed.", None))
    def remove_webhook(call: Call) -> None:
        """Remove a survey's address for notifications."""
        actions.remove_webhook(call.services, call.by, call.survey)

    @api.add(
        "POST",
        f"{path}/test",
        "test_webhook",
        role="admin",
        answer=(200, "The address and its deliveries.", models.WebhookSettings),
        problems=(Problem.NOT_FOUND, Problem.IMMUTABLE),
    )
    def test_webhook(call: Call) -> BaseModel:
        """Send a test message to a survey's address for notifications."""
        actions.test_webhook(call.services, call.by, call.survey)
        return _webhook(call)


def _webhook(call: Call, secret: str | None = None) -> models.WebhookSettings:
    hook = call.services.webhooks.of(call.survey.id)
    return models.WebhookSettings(
        url=hook.url,
        secret=secret,
        deliveries=[
            models.Delivery(event=row.event, state=row.state, tries=row.tries, detail=row.detail)
            for row in hook.deliveries
        ],
    )
