# SPDX-License-Identifier: Apache-2.0
"""The shapes that cross the HTTP border, as the OpenAPI document shows them.

They describe; they do not parse, but for `PlanRequest`. Reports are read by `frankly_protocol.report`, which both
sides share.
"""

from dataclasses import Field as DeclaredField
from dataclasses import fields
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_type_hints

from frankly_analyst import EstimatesRequest, rows
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.report import MAX_TOKEN
from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model

from frankly_server.requests.plan_request import PlanRequest as PlanRequest  # noqa: PLC0414 - a shape like the others


class Shape(BaseModel):
    """A closed object: a field that is not listed does not exist."""

    model_config = ConfigDict(extra="forbid")


class Health(Shape):
    """The server, its database and its schema answer."""

    status: Literal["ok"]


class EnvelopeSignature(Shape):
    """One Ed25519 signature over the envelope's pre-authentication encoding."""

    keyid: str
    sig: str = Field(description="Base64.")


class SignedEnvelope(Shape):
    """A DSSE envelope: verify the payload's exact bytes first, then parse those bytes."""

    payloadType: str  # noqa: N815 - DSSE's own name
    payload: str = Field(description="Base64 of the exact bytes that were signed.")
    signatures: list[EnvelopeSignature]


class KeysChain(Shape):
    """Versions of the keys document, each the base64 of the exact bytes of its envelope."""

    chain: list[str] = Field(min_length=1, max_length=1024)


class MetricsText(RootModel[str]):
    """Counters in Prometheus' text format."""


class LogText(RootModel[str]):
    """A text of the transparency log, in the forms of C2SP."""


class LogEntry(Shape):
    """One entry: the leaf at `position` is SHA-256 of a zero byte and the digest's 32 raw bytes."""

    position: int
    digest: str
    survey: str
    version: int


class LogEntries(Shape):
    """Entries from the position asked for, at most 1,000; the log has `size` of them."""

    size: int
    entries: list[LogEntry]


class Cosigned(Shape):
    """How many witnesses' signatures were kept."""

    kept: int


class AuditedDocument(Shape):
    """One version of a survey: where it stands in the log (null if it does not), and how many reports it has."""

    digest: str
    version: int
    position: int | None
    n: int


class SurveyAudit(Shape):
    """Every version of a survey that was published here."""

    survey: str
    documents: list[AuditedDocument]


Index = Annotated[int, Field(ge=0, le=MAX_INT)]
Symbol = Index | Annotated[str, Field(pattern="^[0-9a-f]{1,250}$")] | list[Index]


class ReportBody(Shape):
    """One respondent's noisy symbols, padded to the document's one length with trailing spaces."""

    v: Literal[1]
    doc: str = Field(
        pattern="^sha256:[0-9a-f]{64}$", description="Digest of the document that was answered."
    )
    id: str = Field(
        pattern="^[0-9a-f]{32}$", description="128 random bits, drawn once with the symbols."
    )
    y: list[Symbol] = Field(
        description="One symbol per block, in the document's order and as its kind of mechanism writes them: a number "
        "of a table, hexadecimal digits of a set, a list of numbers of a product."
    )
    strata: dict[str, str] = Field(description="Public answers by question id.")
    token: Annotated[str, Field(pattern=f"^[A-Za-z0-9_-]{{1,{MAX_TOKEN}}}$")] | None = Field(
        description="What the document's token rule asks for; null if it has none."
    )


class ReportReceipt(Shape):
    """The report is stored, once and durably; `duplicate` says that it already was."""

    status: Literal["accepted", "duplicate"]
    id: str = Field(pattern="^[0-9a-f]{32}$")


class Batch(Shape):
    """Many reports in one transaction; a bad one never fails its neighbours."""

    reports: list[ReportBody] = Field(min_length=1, max_length=1000)


class Refusal(Shape):
    """What the single route would have answered for this report."""

    status: Literal["refused"]
    problem: dict[str, Any] = Field(description="A problem object, as in an error answer.")


class BatchReceipt(Shape):
    """One result per report, in the order they were sent."""

    results: list[ReportReceipt | Refusal]


class ReportAnswer(RootModel[ReportReceipt | BatchReceipt]):
    """A receipt for one report, results for a batch."""


class OpenApi(RootModel[dict[str, Any]]):
    """An OpenAPI 3.1 document."""


def _shape_of(declared: type, *left_out: str) -> Any:
    """Return a shape with the fields of a declaration of `frankly_analyst`, as they are in JSON."""
    hints = get_type_hints(declared)
    shapes: dict[str, Any] = {
        item.name: (
            _json_type(item, hints[item.name]),
            Field(description=item.metadata["description"]),
        )
        for item in fields(declared)
        if item.name not in left_out
    }
    return create_model(declared.__name__, __base__=Shape, **shapes)


def _json_type(item: DeclaredField[Any], hint: Any) -> Any:
    choices = item.metadata.get("choices")
    legal = Literal[choices] if choices else hint
    return item.metadata.get("json", legal | None if NoneType in get_args(hint) else legal)


class EstimateRow(_shape_of(rows.Estimate)):  # type: ignore[misc]  # made from the declared row
    """One number beside its uncertainty; never one without the other."""


class QuestionEstimates(Shape):
    """One question or table; without rows while `n` is below `needed`.

    n : the reports that tell it; of a form, those in which the device drew the question. received :
    all reports of the same versions and group.
    """

    id: str
    block: str
    text: dict[str, str]
    by: dict[str, str] | None
    status: Literal["ok", "insufficient"]
    n: int
    received: int
    needed: int
    documents: list[str]
    rows: list[EstimateRow]
    covariance: list[list[float]] | None = Field(
        description="Of the rows' estimates, in their order; unbiased."
    )
    projected: dict[str, float] | None = Field(
        description="Nearest shares on the simplex; `se` is not theirs."
    )
    projected_interval: dict[str, tuple[float, float]] | None = Field(
        description="[low, high] at `level`: the score interval, cut to what is possible and widened to this share."
    )
    mle: dict[str, float] | None = Field(
        description="Likeliest shares on the simplex; `se` is not theirs."
    )
    mle_interval: dict[str, tuple[float, float]] | None = Field(
        description="The same for the likeliest shares."
    )
    mle_gap: float | None = Field(
        description="Nats, over all reports, by which other shares could be likelier."
    )
    fit_p: float | None = Field(
        description="Whether such reports can come from the mechanism; null if untestable."
    )


class Inputs(Shape):
    """Names of all that the answer was computed from."""

    code: str
    request: dict[str, Any]
    documents: list[dict[str, Any]] = Field(
        description="Digests, and the newest release that was read of each."
    )


class DocumentCount(Shape):
    """How many reports one version of the survey received."""

    digest: str
    version: int
    n: int


class SurveyEstimates(_shape_of(EstimatesRequest, "targets", "simultaneous")):  # type: ignore[misc]
    """All questions of a survey."""

    survey: str
    title: dict[str, str]
    languages: list[str] = Field(
        description="Of the newest version; the first one is the survey's own."
    )
    n: int = Field(description="Reports of all days.")
    documents: list[DocumentCount]
    questions: list[QuestionEstimates]
    beta: str = Field(
        description="The share of fakes that `poisoning_up` and `poisoning_down` are about."
    )
    notes: list[str]
    inputs: Inputs


class PlannedMargin(Shape):
    """A point of the curve around a plan."""

    n: int
    margin: float


class PlannedLevel(Shape):
    """A point of the frontier: margin and information (nats) at a level (nats)."""

    epsilon: str
    margin: float
    information: float


class RegretFigures(Shape):
    """Cost of a design at another truth than its prior."""

    at: Literal["equal shares"]
    ratio: str = Field(description="How many times the reports that `against` needs there.")
    against: str


class PlanResult(Shape):
    """A plan: the margin holds for every true share, up to the method."""

    solve_for: Literal["n", "epsilon", "margin"]
    n: int = Field(description="Reports.")
    epsilon: str | None = Field(description="Nats; null for a given mechanism.")
    margin: float = Field(description="Half-width, of the worst target.")
    margins: list[float]
    invited: int = Field(description="How many to ask, at the response rate.")
    level: float
    method: Literal["clt", "chebyshev"]
    curve: list[PlannedMargin]
    regret: RegretFigures | None = Field(
        description="Of the design if all answers are equally common; null if none."
    )
    frontier: list[PlannedLevel] | None = None


ALL = (
    Health, MetricsText, SignedEnvelope, KeysChain, LogText, LogEntries, Cosigned, SurveyAudit,
    ReportBody, ReportReceipt, Batch, BatchReceipt, ReportAnswer, SurveyEstimates, OpenApi,
    PlanRequest, PlannedMargin, PlannedLevel, RegretFigures, PlanResult,
)  # fmt: skip
