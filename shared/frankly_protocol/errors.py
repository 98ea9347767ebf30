# SPDX-License-Identifier: Apache-2.0
"""Errors shared by server and device. No message ever contains an answer, a symbol or a key.

FranklyError
 ├─ InvalidInput          bad input from an admin, an analyst or a reporter; carries a Problem
 ├─ DocumentRejected      a signed document failed a numbered acceptance step; nothing may be sent
 │   ├─ UnsupportedDocument   a newer format, or an unknown notion or kind: update the app
 │   ├─ ClockError            outside its time window
 │   ├─ RollbackDetected      a lower version than one already seen
 │   ├─ Equivocation          the same version with other content
 │   ├─ KeyChainError         a keys document that does not follow its predecessor
 │   └─ LogError              an invalid proof or checkpoint of the transparency log
 └─ RandomnessError       the operating system gave no randomness; there is no fallback
"""

from frankly_protocol.problems import Problem


class FranklyError(Exception):
    """Base class of all errors that Frankly raises on purpose.

    ``code`` is a stable slug, ``detail`` says what is wrong and the way out, ``field`` the input at
    fault.
    """

    def __init__(self, detail: str, *, code: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.detail}" if self.field else self.detail


class InvalidInput(FranklyError):
    """Input that cannot be used; ``problem`` gives the HTTP status and title."""

    def __init__(self, problem: Problem, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code=problem.code, field=field)
        self.problem = problem


class DocumentRejected(FranklyError):
    """A document failed acceptance.

    ``reason``: size, envelope, signature, canonical, schema, type, host, window, version, pin,
    weights, privacy, work_limit, keys or log.
    """

    def __init__(self, reason: str, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code=f"document_{reason}", field=field)
        self.reason = reason


class UnsupportedDocument(DocumentRejected):
    """The document uses a format, notion or kind that this version does not know: update the app."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__("type", detail, field)


class ClockError(DocumentRejected):
    """The device's time lies outside the document's window; the detail shows both."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__("window", detail, field)


class RollbackDetected(DocumentRejected):
    """The version is lower than one this device has already accepted."""

    def __init__(self, detail: str, field: str | None = "version") -> None:
        super().__init__("version", detail, field)


class Equivocation(DocumentRejected):
    """Two different documents claim the same version; both envelopes should be kept as evidence."""

    def __init__(self, detail: str, field: str | None = "version") -> None:
        super().__init__("version", detail, field)


class KeyChainError(DocumentRejected):
    """A keys document is not signed or numbered as its predecessor requires."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__("keys", detail, field)


class LogError(DocumentRejected):
    """A checkpoint or proof of the transparency log is invalid or has too few witnesses."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__("log", detail, field)


class RandomnessError(FranklyError):
    """The operating system's random source failed; nothing was drawn and nothing may be sent."""

    def __init__(self) -> None:
        super().__init__(
            "the operating system gave no random bits; nothing was sent, try again later",
            code="randomness",
        )
