# SPDX-License-Identifier: Apache-2.0
"""Errors of the SDK. No message ever contains an answer or a symbol.

FranklyError                 (frankly_protocol.errors)
 ├─ DocumentRejected …       the signed document failed a numbered step; nothing was sent, do not retry
 ├─ RandomnessError          the system gave no random bits; nothing was drawn or sent
 ├─ LinkError                the link, or the address reports go to, cannot be used
 │   └─ InsecureTransport    http:// to anything but this machine
 ├─ PolicyRefused            honest document, but it asks for more than this app allows
 │   └─ BudgetExceeded       together with what this install has already spent
 ├─ UnknownChoice            the app passed something that is not one of the choices (a developer's mistake)
 ├─ AlreadyAnswered          this install has answered this survey; the first value stands
 ├─ Disabled                 the app opened this client with enabled=False: there is no survey
 ├─ SurveyClosed             the survey's time ran out before anything was drawn
 ├─ StoreError               the store cannot be used; nothing was drawn or sent
 └─ NetworkError             the server could not be reached or sent an unusable response; a retry may help
"""

from collections.abc import Sequence

from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem

from frankly_sdk.receipt import Receipt


class LinkError(FranklyError):
    """An address cannot be used; `detail` says why, ``field`` is link, relay or collect_url."""

    def __init__(self, detail: str, code: str = "link", field: str = "link") -> None:
        super().__init__(detail, code=code, field=field)


class InsecureTransport(LinkError):
    """The address is not https, and not this machine's own."""

    def __init__(self, detail: str, field: str = "link") -> None:
        super().__init__(detail, "insecure_transport", field)


class PolicyRefused(FranklyError):
    """The app's policy refuses the survey.

    ``reason`` is cap, ceiling, composition, final, unpinned, unlogged or budget.
    """

    def __init__(self, reason: str, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code=f"policy_{reason}", field=field)
        self.reason = reason


class BudgetExceeded(PolicyRefused):
    """The survey and all answered before it would cost more than the cap."""

    def __init__(self, detail: str) -> None:
        super().__init__("budget", detail)


class UnknownChoice(FranklyError):
    """An answer is missing, surplus or no valid choice.

    `valid` lists the valid choices, or the ids of the questions.
    """

    def __init__(self, question: str | None, valid: Sequence[str], detail: str) -> None:
        super().__init__(
            f"{detail}; valid: {', '.join(valid)}",
            code="unknown_choice",
            field=question,
        )
        self.valid = tuple(valid)


class AlreadyAnswered(FranklyError):
    """This install has answered this survey already; `receipt` says what became of that answer."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(
            "this survey has been answered here; the first answer stands",
            code="already_answered",
        )
        self.receipt = receipt


class Disabled(FranklyError):
    """The client was opened with enabled=False and knows no survey; ask `client.enabled` first."""

    def __init__(self) -> None:
        super().__init__(
            "this client is switched off and knows no survey; see client.enabled",
            code="disabled",
        )


class SurveyClosed(FranklyError):
    """The survey is closed and nothing was drawn; a later refusal is in the receipt instead."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code=Problem.CLOSED.code, field="closes")


class StoreError(FranklyError):
    """The store cannot be read or written; no fallback in memory, so nothing was drawn or sent."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="store")


class NetworkError(FranklyError):
    """The server cannot be reached, or its response cannot be used; trying again may help."""

    def __init__(self, detail: str, code: str = "network") -> None:
        super().__init__(detail, code=code)
