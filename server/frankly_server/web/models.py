# SPDX-License-Identifier: Apache-2.0
"""Models of request and response bodies for the OpenAPI document.

They only describe bodies and do not parse any. Models for analysts are in `estimates_models`,
`counts_models` and `plan_models`. `frankly_protocol.report`, which server and devices share, parses
reports.
"""

from typing import Annotated, Any, Literal

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.report import MAX_TOKEN
from pydantic import BaseModel, ConfigDict, Field, RootModel


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
    """A DSSE envelope. Verify the exact bytes of the payload before parsing them."""

    payloadType: str  # noqa: N815 - DSSE's own name
    payload: str = Field(description="Base64 of the exact bytes that were signed.")
    signatures: list[EnvelopeSignature]


class KeysChain(Shape):
    """Versions of the keys document, each as base64 of the exact bytes of its envelope."""

    chain: list[str] = Field(min_length=1, max_length=1024)


class PageText(RootModel[str]):
    """A page, script or style sheet for browsers."""


class Picture(RootModel[bytes]):
    """A picture."""


class MetricsText(RootModel[str]):
    """Counters in Prometheus' text format."""


class LogText(RootModel[str]):
    """A part of the transparency log, in the format of the route."""


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
    """One version of a survey: position in the log (or null), and number of released reports."""

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
    """One respondent's noisy symbols, padded with spaces to the length that the document sets."""

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
    """Receipt of a durably stored report; `duplicate` if it was already stored."""

    status: Literal["accepted", "duplicate"]
    id: str = Field(pattern="^[0-9a-f]{32}$")


class Batch(Shape):
    """Many reports in one transaction; a refused report does not affect the others."""

    reports: list[ReportBody] = Field(min_length=1, max_length=1000)


class Refusal(Shape):
    """A refused report, with the problem that it would have caused if sent alone."""

    status: Literal["refused"]
    problem: dict[str, Any] = Field(description="A problem object, as in an error response.")


class BatchReceipt(Shape):
    """One result per report, in the order of the batch."""

    results: list[ReportReceipt | Refusal]


class ReportAnswer(RootModel[ReportReceipt | BatchReceipt]):
    """A receipt for one report, or results for a batch."""


class OpenApi(RootModel[dict[str, Any]]):
    """An OpenAPI 3.1 document."""


ALL = (
    PageText,
    Picture,
    Health,
    MetricsText,
    SignedEnvelope,
    KeysChain,
    LogText,
    LogEntries,
    Cosigned,
    SurveyAudit,
    ReportBody,
    ReportReceipt,
    Batch,
    BatchReceipt,
    ReportAnswer,
    OpenApi,
)
