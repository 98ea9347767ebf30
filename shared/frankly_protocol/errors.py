# SPDX-License-Identifier: Apache-2.0
"""Errors shared by server and device.

No message contains a respondent's answer or symbol, or a private key.

FranklyError
 ├─ InvalidInput          bad input from an admin, an analyst or a device; carries a Problem
 ├─ DocumentRejected      a signed document failed an acceptance step; nothing may be sent
 │   ├─ UnsupportedDocument   a newer format, or an unknown notion or kind: update the app
 │   ├─ ClockError            outside its time window
 │   ├─ RollbackDetected      a lower version or a smaller log than one seen before
 │   ├─ Equivocation          the same version with other content, or a forked log
 │   ├─ KeyChainError         keys that do not follow from the known ones
 │   └─ LogError              an invalid proof or checkpoint of the transparency log
 └─ RandomnessError       the operating system gave no random bits; there is no fallback
"""

from typing import Any

from frankly_protocol.problems import Problem


class FranklyError(Exception):
    """Base class of the errors that the server and the SDK report to their callers.

    ``code`` is a stable slug; ``detail`` says what is wrong and, if possible, how to fix it;
    ``field`` names the invalid input, or None if there is none.
    """

    def __init__(self, detail: str, *, code: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.detail}" if self.field else self.detail

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled without a call of __init__, whose parameters differ by class.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    kind: type[FranklyError], arguments: tuple[Any, ...], state: dict[str, Any]
) -> FranklyError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


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
    """The document uses a format, notion or kind that is not supported: update the app."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__("type", detail, field)


class ClockError(DocumentRejected):
    """The device's time lies outside the document's window; the detail shows both."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__("window", detail, field)


class RollbackDetected(DocumentRejected):
    """A document, a chain of keys or a log is older than the one this device accepted before."""

    def __init__(self, detail: str, field: str | None = "version") -> None:
        super().__init__("version", detail, field)


class Equivocation(DocumentRejected):
    """Two documents of one version differ, or a log has forked; keep both pieces as evidence."""

    def __init__(self, detail: str, field: str | None = "version") -> None:
        super().__init__("version", detail, field)


class KeyChainError(DocumentRejected):
    """Keys do not follow from the known ones, or their chain is not complete."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__("keys", detail, field)


class LogError(DocumentRejected):
    """A checkpoint or proof of the transparency log is invalid or has too few witnesses."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__("log", detail, field)


class RandomnessError(FranklyError):
    """The operating system's random source failed; nothing may be sent."""

    def __init__(self) -> None:
        super().__init__(
            "the operating system gave no random bits; nothing was sent, try again later",
            code="randomness",
        )
