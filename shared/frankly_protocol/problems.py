# SPDX-License-Identifier: Apache-2.0
"""The table of problems, sent by the server and read by clients (RFC 9457).

A problem's ``code`` is stable; the ``detail`` sent with it says what is wrong or how to fix it, and
never repeats an answer.
"""

from enum import Enum
from typing import Any, Final

_URN = "urn:frankly:problem:"


class Problem(Enum):
    """Every problem that the API or a command reports: (code, HTTP status, title)."""

    # Levels and limits that an admin requests (bad inputs 1-3).
    EPS_NOT_FINITE = ("eps_not_finite", 422, "The level is not a finite number.")
    NUMBER_NOT_FINITE = ("number_not_finite", 422, "JSON has no NaN and no Infinity.")
    EPS_OUT_OF_RANGE = (
        "eps_out_of_range",
        422,
        "The level is outside the range that can be promised.",
    )
    EPS_FORMAT = ("eps_format", 422, "The level is not a plain decimal string.")
    # Priors (bad inputs 4-8).
    PRIOR_SUM = ("prior_sum", 422, "The prior does not sum to one.")
    PRIOR_SHAPE = ("prior_shape", 422, "The prior has the wrong shape.")
    PRIOR_VALUE = (
        "prior_value",
        422,
        "The prior contains a value that is not a probability or a count.",
    )
    SECRET_EMPTY = ("secret_empty", 422, "A secret has no mass under the prior.")
    CHOICE_UNPROTECTED = (
        "choice_unprotected",
        422,
        "A choice has no mass under the prior: it would be unprotected.",
    )
    PRIOR_SMALL_CELLS = (
        "prior_small_cells",
        409,
        "The prior has cells small enough to expose people.",
    )
    # Survey definitions (bad inputs 9-12, 43).
    CHOICES_COUNT = ("choices_count", 422, "A question needs 2 to 1000 choices, in a form 2 to 64.")
    CHOICES_COLLIDE = ("choices_collide", 422, "Two choices cannot be distinguished.")
    TEXT_CHARACTERS = (
        "text_characters",
        422,
        "A text contains characters that cannot be shown safely.",
    )
    DEFINITION_INVALID = ("definition_invalid", 422, "The survey definition is not valid.")
    BUDGET_EXCEEDED = ("budget_exceeded", 422, "The form asks for more than its stated budget.")
    IMMUTABLE = ("immutable", 409, "In this state it cannot be changed.")
    # The optimiser (bad inputs 9, 13-16).
    IDENTITY_MECHANISM = ("identity_mechanism", 422, "The optimum sends answers unchanged.")
    OPTIMISER_LIMIT = ("optimiser_limit", 422, "The optimum is out of reach at this size.")
    MECHANISM_NOT_CERTIFIED = ("mechanism_not_certified", 422, "No certified mechanism was found.")
    NOT_IDENTIFIABLE = (
        "not_identifiable",
        422,
        "Some shares could not be estimated from the reports.",
    )
    UNSUPPORTED = ("unsupported", 422, "This combination does not exist.")
    WEIGHTS_INVALID = ("weights_invalid", 422, "The weights do not define a mechanism.")
    # Estimates (bad input 49).
    CONFIDENCE_RANGE = (
        "confidence_range",
        422,
        "The confidence level must lie strictly between 0 and 1.",
    )
    COUNTS_INVALID = ("counts_invalid", 422, "The counts do not fit.")
    TARGETS_INVALID = ("targets_invalid", 422, "The targets do not fit the mechanism.")
    # Bytes and fields (bad inputs 35-36).
    JSON_INVALID = ("json_invalid", 400, "The body is not the expected JSON.")
    FIELD_UNKNOWN = ("field_unknown", 422, "A field is not known here.")
    FIELD_MISSING = ("field_missing", 422, "A field is missing.")
    FIELD_TYPE = ("field_type", 422, "A field has the wrong type or an invalid value.")
    Y_TYPE = ("y_type", 422, "The symbols must be a list of whole numbers.")
    # Intake (bad inputs 37-42).
    SYMBOL_UNKNOWN = ("symbol_unknown", 422, "A symbol is not one the survey's mechanism can send.")
    SURVEY_UNKNOWN = ("survey_unknown", 404, "There is no such survey.")
    DOC_MISMATCH = ("doc_mismatch", 422, "The report names a document that is not this survey's.")
    TOO_EARLY = ("too_early", 409, "The survey has not opened yet.")
    CLOSED = ("closed", 410, "The survey is closed.")
    ID_CONFLICT = ("id_conflict", 409, "A different report with this id was already accepted.")
    STRATA_INVALID = ("strata_invalid", 422, "The public answers do not fit the survey.")
    TOKEN_INVALID = ("token_invalid", 401, "The survey's token rule is not met.")
    TOKEN_FOREIGN = ("token_foreign", 403, "The token is not valid for this survey.")
    TOKEN_SPENT = ("token_spent", 409, "The token has been used.")
    # The transparency log.
    LOG_UNKNOWN = ("log_unknown", 404, "The log has no such entry or size.")
    COSIGNATURE_INVALID = ("cosignature_invalid", 422, "The cosignature does not fit this log.")
    # Access and HTTP.
    UNAUTHENTICATED = ("unauthenticated", 401, "A valid API key is needed.")
    FORBIDDEN = ("forbidden", 403, "This key does not give access here.")
    NOT_FOUND = ("not_found", 404, "There is nothing here.")
    TAKEN = ("taken", 409, "This name is in use.")
    PRECONDITION_FAILED = ("precondition_failed", 412, "It has changed since it was read.")
    PRECONDITION_REQUIRED = (
        "precondition_required",
        428,
        "Say which state the change is based on.",
    )
    IDEMPOTENCY_CONFLICT = (
        "idempotency_conflict",
        409,
        "A request with this idempotency key was carried out, or is being carried out.",
    )
    IDEMPOTENCY_MISMATCH = (
        "idempotency_mismatch",
        422,
        "This idempotency key was sent with another request.",
    )
    METHOD_NOT_ALLOWED = ("method_not_allowed", 405, "This address does not support the method.")
    BODY_TOO_LARGE = ("body_too_large", 413, "The body is larger than allowed.")
    CONTENT_TYPE = ("content_type", 415, "The content type is not the one expected.")
    BAD_REQUEST = ("bad_request", 400, "The request could not be understood.")
    TIMED_OUT = ("timed_out", 408, "The request took too long to arrive.")
    TOO_MANY = ("too_many", 429, "Too many requests.")
    INTERNAL = ("internal", 500, "Something failed on our side.")
    UNAVAILABLE = ("unavailable", 503, "The service cannot answer right now.")
    # Command line and key files (bad inputs 51-54).
    USAGE = ("usage", 400, "The command was not used as intended.")
    KEY_FILE = ("key_file", 422, "A key file cannot be used.")
    FILE_EXISTS = ("file_exists", 409, "It already exists and was not replaced.")
    UNSAFE_SETTING = ("unsafe_setting", 422, "A setting is not safe to start with.")

    def __init__(self, code: str, status: int, title: str) -> None:
        self.code = code
        self.status = status
        self.title = title

    @property
    def uri(self) -> str:
        """The problem's type URI (RFC 9457)."""
        return _URN + self.code

    @classmethod
    def from_code(cls, code: str) -> "Problem | None":
        """Return the problem with this code, or None if there is none."""
        return next((p for p in cls if p.code == code), None)


FINAL: Final = frozenset(
    {
        # The server knows the survey and its document, and has read the whole report.
        Problem.SYMBOL_UNKNOWN,
        Problem.STRATA_INVALID,
        Problem.CLOSED,
        Problem.ID_CONFLICT,
        Problem.TOKEN_FOREIGN,
        Problem.TOKEN_SPENT,
    }
)
"""Problems after which a device erases its report; after any other reply it sends the report again
until the survey closes: a server may have lost its survey or its invitations for a while, and a
malformed report may have been damaged on the way (protocol, section 7)."""


def problem_body(problem: Problem, detail: str, field: str | None = None) -> dict[str, Any]:
    """Return the RFC 9457 object for a problem.

    `field` names the input at fault, or None if there is none.
    """
    return {
        "type": problem.uri,
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": detail,
        "field": field,
    }
