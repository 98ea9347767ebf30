# SPDX-License-Identifier: Apache-2.0
"""Models of request and response bodies for the OpenAPI document.

They only describe bodies and parse none, except `PlanRequest`. Reports are parsed by
`frankly_protocol.report`, which server and devices share.
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
    """Base of all models: an object without any other fields."""

    model_config = ConfigDict(extra="forbid")


class Health(Shape):
    """The check has succeeded."""

    status: Literal["ok"]


class EnvelopeSignature(Shape):
    """One Ed25519 signature over the envelope's pre-authentication encoding."""

    keyid: str
    sig: str = Field(description="Base64.")


class SignedEnvelope(Shape):
    """A DSSE envelope: first verify the payload's exact bytes, then parse them."""

    payloadType: str  # noqa: N815 - DSSE's own name
    payload: str = Field(description="Base64 of the exact bytes that were signed.")
    signatures: list[EnvelopeSignature]


class KeysChain(Shape):
    """Versions of the keys document, each the base64 of the exact bytes of its envelope."""

    chain: list[str] = Field(min_length=1, max_length=1024)


class MetricsText(RootModel[str]):
    """Counters in Prometheus' text format."""


class LogText(RootModel[str]):
    """A part of the transparency log, in the format that the route names."""


class LogEntry(Shape):
    """One entry: the leaf at `position` is SHA-256 of a zero byte and the digest's 32 raw bytes."""

    position: int
    digest: str
    survey: str
    version: int


class LogEntries(Shape):
    """At most 1,000 entries from the requested position on; the log has `size` entries."""

    size: int
    entries: list[LogEntry]


class Cosigned(Shape):
    """Number of witnesses whose signatures were stored."""

    kept: int


class AuditedDocument(Shape):
    """One version of a survey: position in the log, null if it is not there, and released reports."""

    digest: str
    version: int
    position: int | None
    n: int


class SurveyAudit(Shape):
    """Every published version of a survey."""

    survey: str
    documents: list[AuditedDocument]


Index = Annotated[int, Field(ge=0, le=MAX_INT)]
Symbol = Index | Annotated[str, Field(pattern="^[0-9a-f]{1,250}$")] | list[Index]


class ReportBody(Shape):
    """One respondent's noisy symbols, padded by trailing spaces to the length the document sets."""

    v: Literal[1]
    doc: str = Field(
        pattern="^sha256:[0-9a-f]{64}$", description="Digest of the document that was answered."
    )
    id: str = Field(
        pattern="^[0-9a-f]{32}$", description="128 random bits, drawn once with the symbols."
    )
    y: list[Symbol] = Field(
        description="One symbol per block, in the document's order. The mechanism decides its form: a number for a "
        "table, hexadecimal digits for a set, a list of numbers for a product."
    )
    strata: dict[str, str] = Field(description="Public answers by question id.")
    token: Annotated[str, Field(pattern=f"^[A-Za-z0-9_-]{{1,{MAX_TOKEN}}}$")] | None = Field(
        description="The token that the document's token rule requires; null if it has no such rule."
    )


class ReportReceipt(Shape):
    """The report is stored, once and durably; `duplicate` if it was stored before."""

    status: Literal["accepted", "duplicate"]
    id: str = Field(pattern="^[0-9a-f]{32}$")


class Batch(Shape):
    """Many reports in one transaction; one that is refused does not affect the others."""

    reports: list[ReportBody] = Field(min_length=1, max_length=1000)


class Refusal(Shape):
    """A refused report, with the problem that it would have caused if sent alone."""

    status: Literal["refused"]
    problem: dict[str, Any] = Field(description="A problem object, as in an error response.")


class BatchReceipt(Shape):
    """One result per report, in the order they were sent."""

    results: list[ReportReceipt | Refusal]


class ReportAnswer(RootModel[ReportReceipt | BatchReceipt]):
    """A receipt for one report, results for a batch."""


class OpenApi(RootModel[dict[str, Any]]):
    """An OpenAPI 3.1 document."""


def _shape_of(declared: type, *left_out: str) -> Any:
    """Return a model with the fields that a dataclass of `frankly_analyst` has in JSON."""
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


# Derived, so that the analyst's client and the OpenAPI document cannot disagree.
class EstimateRow(_shape_of(rows.Estimate)):  # type: ignore[misc]  # made from the declared row
    """One estimate and its uncertainty; unknown values are null."""


class QuestionEstimates(Shape):
    """One question or table; without rows while `n` is below `needed`.

    n : number of reports that the estimate uses; in a form, those whose device drew the question.
    received : number of all reports of the same versions and group.
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
        description="Unbiased covariance matrix of the rows' estimates, in the order of the rows."
    )
    projected: dict[str, float] | None = Field(
        description="The nearest shares on the simplex; `se` is not their standard error."
    )
    projected_interval: dict[str, tuple[float, float]] | None = Field(
        description="[low, high] at `level`: the score interval, cut to possible shares and widened to this share."
    )
    mle: dict[str, float] | None = Field(
        description="The maximum-likelihood shares; `se` is not their standard error."
    )
    mle_interval: dict[str, tuple[float, float]] | None = Field(
        description="Like `projected_interval`, for the maximum-likelihood shares."
    )
    mle_gap: float | None = Field(
        description="Upper bound, in nats over all reports, on how far the log-likelihood is below its maximum."
    )
    fit_p: float | None = Field(
        description="p-value of the test that the reports come from the mechanism; null if untestable."
    )


class Inputs(Shape):
    """Identifiers of everything that the result was computed from."""

    code: str
    request: dict[str, Any]
    documents: list[dict[str, Any]] = Field(
        description="Digests of the documents, and the newest release that was read from each."
    )


class DocumentCount(Shape):
    """Number of released reports of one version of the survey."""

    digest: str
    version: int
    n: int


class SurveyEstimates(_shape_of(EstimatesRequest, "targets", "simultaneous")):  # type: ignore[misc]
    """All questions of a survey."""

    survey: str
    title: dict[str, str]
    languages: list[str] = Field(
        description="Languages of the newest version; the first one is the survey's main language."
    )
    n: int = Field(description="Number of released reports, of all days.")
    documents: list[DocumentCount]
    questions: list[QuestionEstimates]
    beta: str = Field(
        description="The share of fake reports that `poisoning_up` and `poisoning_down` assume."
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


class PlannedTable(Shape):
    """A joint table of two questions of a form, by position: the widest margin of its cells."""

    questions: tuple[int, int]
    margin: float


class RegretFigures(Shape):
    """Cost of a design if the true shares differ from its prior."""

    at: Literal["equal shares"]
    ratio: str = Field(
        description="Reports that the design needs there, divided by those that `against` needs."
    )
    against: str


class PlanResult(Shape):
    """A plan; its margin holds for any true shares, with the accuracy of `method`."""

    solve_for: Literal["n", "epsilon", "margin"]
    n: int = Field(description="Number of reports.")
    epsilon: str | None = Field(
        description="Level in nats; null for a given mechanism, and where there is no single one."
    )
    factor: str | None = Field(
        None, description="Of metric-ldp: the factor on all levels, if epsilon was solved for."
    )
    epsilons: list[list[str | None]] | None = Field(
        None, description="With factor: the levels of all pairs, in nats."
    )
    margin: float = Field(description="Half-width of the interval of the worst target.")
    margins: list[float]
    invited: int = Field(description="Number of people to ask, given the response rate.")
    level: float
    method: Literal["clt", "chebyshev"]
    curve: list[PlannedMargin]
    regret: RegretFigures | None = Field(
        description="Cost of the design if all answers are equally common; null if there is none."
    )
    frontier: list[PlannedLevel] | None = None
    shown: list[float] | None = Field(
        None, description="For a form: the share of reports that show each question."
    )
    cross_tables: list[PlannedTable] | None = Field(
        None, description="For a form: the requested pairs of questions."
    )


ALL = (
    Health, MetricsText, SignedEnvelope, KeysChain, LogText, LogEntries, Cosigned, SurveyAudit,
    ReportBody, ReportReceipt, Batch, BatchReceipt, ReportAnswer, SurveyEstimates, OpenApi,
    PlanRequest, PlannedMargin, PlannedLevel, PlannedTable, RegretFigures, PlanResult,
)  # fmt: skip
