# SPDX-License-Identifier: Apache-2.0
"""Models of the management API: what is sent (`…Request`, parsed) and what is returned."""

from typing import Annotated, Any, Literal

from frankly_design.requests.fields import Flag, OneOf, RequestModel
from pydantic import Field, RootModel, StrictInt

from frankly_server.accounts import ROLES
from frankly_server.keys import access
from frankly_server.surveys.opened import ListedSurvey
from frankly_server.surveys.survey_state import MOVES
from frankly_server.web.models import Shape
from frankly_server.web.openapi import ProblemDetails
from frankly_server.web.plan_models import RegretFigures

Count = Annotated[int, Field(ge=0)]
Id = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Time = Annotated[str, Field(description="UTC, RFC 3339.")]


class SurveyFile(RootModel[dict[str, Any]]):
    """A survey file: the fields of docs/survey_file.schema.json, numbers also as texts."""


class SurveyDetails(ListedSurvey):
    """A survey."""

    link: str | None = Field(description="For respondents; null before the first version.")
    closes: Time | None = Field(
        description="Last moment of the version that decides the state; null for a draft."
    )
    draft: str = Field(description="Digest of the draft.")
    is_published: bool = Field(description="True if the newest version has the draft's definition.")
    obstacles: list[str] = Field(description="Why devices refuse the newest version.")
    stop_at: int | None = Field(
        description="Number of released reports at which the survey closes itself."
    )
    min_reports: int = Field(description="Number of reports that an estimate needs.")
    next_release: Time | None = Field(description="Null if no version releases reports any more.")


class Level(Shape):
    """Bounds in nats as decimal texts, `inf` if unbounded: the level, and the change of log-odds."""

    level: str
    odds: str


class SecretLevel(Level):
    """Bounds for one secret; `strata_odds` is what the public answers reveal."""

    strata_odds: str


class WholeReport(Shape):
    """What a complete report reveals at most about each secret and the answers, and its cost."""

    secrets: dict[str, SecretLevel]
    answers: Level
    cost: str


class PromisedBlock(Shape):
    """Promises of a block or of the form; levels in nats as decimal texts, `inf` if unbounded."""

    id: str
    mechanism: str
    notion: str
    epsilon: str
    ceiling: str
    counted_by: str
    answers_unchanged: bool
    rules_out: bool = Field(description="True if some reports practically exclude some answers.")
    estimable: list[str]
    untold: list[str] = Field(description="Shares that cannot be told apart.")
    regret: RegretFigures | None
    notes: list[str]


class AskedOf(Shape):
    """How many of its questions a person is asked, before rules skip any."""

    of: int
    most: int
    mean: float


class ExpectedFigure(Shape):
    """What to expect of a question or table; the half-width at 95%, null without a result.

    factor : largest standard error of the figure corrected by anchors over that of the uncorrected one;
    null if nothing corrects it.
    """

    text: str
    reports: int
    figure: str
    unit: Literal["share", "number"]
    margin: float | None
    has_result: bool
    factor: float | None


class ExpectedResults(Shape):
    """What to expect if the expected number of people answer."""

    people: int
    min_reports: int
    asked: AskedOf | None
    questions: list[ExpectedFigure] | None


class DryRun(Shape):
    """What the request would do, and what publishing the draft would say. Nothing was stored."""

    status: Literal["created", "updated", "unchanged"]
    survey: Id | None
    name: str
    diff: list[str]
    report: WholeReport
    budget: str
    blocks: list[PromisedBlock]
    warnings: list[str]
    expected: ExpectedResults


class SurveyVersion(Shape):
    """A published version. Its signed document is at /v1/surveys/{survey_id}/document."""

    version: int
    digest: str
    link: str
    issued: Time
    opens: Time
    closes: Time
    expires: Time
    report: WholeReport
    blocks: list[PromisedBlock]
    warnings: list[str]


class ListedVersion(Shape):
    """A published version, in short."""

    version: int
    digest: str
    link: str
    issued: Time
    opens: Time
    closes: Time
    n: Count = Field(description="Number of released reports.")


class SurveyVersions(Shape):
    """Published versions, oldest first."""

    versions: list[ListedVersion]
    next: int | None = Field(description="Value of `after` for the next page; null on the last.")


class MoveRequest(RequestModel):
    """A change of state. Closing and archiving cannot be undone."""

    move: Annotated[str, OneOf("moves", tuple(MOVES))]


class EraseRequest(RequestModel):
    """Confirmation: the survey's name."""

    name: str


class StopRuleRequest(RequestModel):
    """Number of released reports at which the survey closes itself; null for never."""

    reports: StrictInt | None


class PublishingJob(Shape):
    """A publication in the background. Ask again until its state is done, failed or cancelled."""

    job: Id
    state: Annotated[str, OneOf("states", ("running", "cancelling", "done", "failed", "cancelled"))]
    done: Count = Field(description="Number of blocks that are designed.")
    total: Count = Field(description="Number of blocks.")
    block: str | None = Field(description="The block that is being designed.")
    digest: str | None = Field(description="Digest of the version, once the job is done.")
    is_new: bool | None = Field(
        description="False if a version with this definition was there before."
    )
    problem: ProblemDetails | None = Field(description="Why the job failed.")
    updated: Time


class ReleasedDay(Shape):
    """Number of reports that were released on a day (UTC)."""

    day: str
    reports: Count


class Releases(Shape):
    """Releases of a survey's reports; pending ones are in no number."""

    next: Time | None
    n: Count
    days: list[ReleasedDay]


class Released(Shape):
    """Number of reports that were released now."""

    released: Count


class InvitationsRequest(RequestModel):
    """Number of invitations to make, 1 to 5,000, and their source, if the survey has sources."""

    count: StrictInt
    source: str | None = None


class Invitation(Shape):
    """An invitation for one report."""

    code: str
    link: str


class Invitations(Shape):
    """New invitations. They are shown once: the server stores hashes."""

    invitations: list[Invitation]


class RevokeInvitationsRequest(RequestModel):
    """The code of one unused invitation, or `all` for all unused ones, perhaps of one source."""

    code: str | None = None
    all: Flag = False
    source: str | None = None


class WebhookRequest(RequestModel):
    """An https address on a host that the operator allows."""

    url: str


class Delivery(Shape):
    """A notification, and the result of the last attempt to deliver it."""

    event: str
    state: Annotated[str, OneOf("states", ("waiting", "delivered", "failed"))]
    tries: Count
    detail: str


class WebhookSettings(Shape):
    """A survey's address for notifications. secret : only in the response that sets it."""

    url: str | None
    secret: str | None
    deliveries: list[Delivery]


class ApiKey(Shape):
    """An API key, without its secret."""

    prefix: str
    label: str
    role: Annotated[str, OneOf("roles", access.ROLES)]
    surveys: list[str] = Field(description="Ids of the surveys that it opens; empty for all.")
    created: Time
    revoked: Time | None


class ApiKeys(Shape):
    """The organisation's API keys, oldest first."""

    keys: list[ApiKey]
    next: str | None = Field(description="Value of `after` for the next page; null on the last.")


class ApiKeyRequest(RequestModel):
    """A key to make; its role has at most the caller's rights. A reader's opens one survey's results page."""

    role: str
    label: str
    surveys: list[str] = Field(
        default=[], max_length=200, description="Ids of the surveys that it opens; empty for all."
    )


class NewApiKey(Shape):
    """A new key. It is shown once: the server stores a hash."""

    prefix: str
    key: str


class Member(Shape):
    """A person's account."""

    account: Id
    email: str
    role: Annotated[str, OneOf("roles", ROLES)]
    state: Annotated[str, OneOf("states", ("open", "locked", "disabled"))]
    created: Time


class People(Shape):
    """The organisation's accounts, by address."""

    people: list[Member]
    next: str | None = Field(description="Value of `after` for the next page; null on the last.")


class PersonRequest(RequestModel):
    """An account to make."""

    email: str
    role: str


class NewPerson(Shape):
    """A new account. The password is shown once; ask its owner to change it."""

    account: Id
    email: str
    role: str
    password: str


class RoleRequest(RequestModel):
    """A role: viewer, analyst, admin or owner."""

    role: str


class TrailEvent(Shape):
    """An event of the audit trail."""

    position: int
    at: Time
    actor: str
    action: str
    subject: str


class AuditTrail(Shape):
    """Events of the organisation, newest first."""

    events: list[TrailEvent]
    next: int | None = Field(description="Value of `before` for the next page; null on the last.")


ALL = (
    SurveyFile,
    SurveyDetails,
    DryRun,
    SurveyVersion,
    SurveyVersions,
    MoveRequest,
    EraseRequest,
    StopRuleRequest,
    PublishingJob,
    Releases,
    Released,
    InvitationsRequest,
    Invitations,
    RevokeInvitationsRequest,
    WebhookRequest,
    WebhookSettings,
    ApiKeys,
    ApiKeyRequest,
    NewApiKey,
    People,
    PersonRequest,
    NewPerson,
    RoleRequest,
    AuditTrail,
)
