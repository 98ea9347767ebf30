# SPDX-License-Identifier: Apache-2.0
"""Errors of the SDK. No message contains a respondent's answer or symbol.

FranklyError                 (frankly_protocol.errors)
 ├─ DocumentRejected …       the signed document failed an acceptance step; no report was sent; do not retry
 ├─ RandomnessError          the system gave no random bits; no report was sealed or sent
 ├─ LinkError                the link, the relay, or the address that collects reports cannot be used
 │   └─ InsecureTransport    an address that is neither https nor http to this machine
 ├─ PolicyRefused            a valid document that exceeds the limits of this app
 │   └─ BudgetExceeded       the respondent's remaining budget is too small
 ├─ UnknownChoice            a mistake of the app: it passed something that is not one of the choices
 ├─ AlreadyAnswered          this respondent has answered this survey; the first answer remains valid
 ├─ Disabled                 the app opened this client with enabled=False: there is no survey
 ├─ SurveyClosed             the survey closed before anything was drawn
 ├─ StoreError               the store cannot be used; no new report was sent
 └─ NetworkError             the server could not be reached or sent an unusable response; a retry may help
"""

from collections.abc import Sequence

from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem

from frankly_sdk.receipt import Receipt


class LinkError(FranklyError):
    """An address cannot be used, as `detail` explains; ``field`` is link, relay or collect_url."""

    def __init__(self, detail: str, code: str = "link", field: str = "link") -> None:
        super().__init__(detail, code=code, field=field)


class InsecureTransport(LinkError):
    """An address is neither https nor http to this machine.

    Also raised if another host's survey would collect its reports on this machine.
    """

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
    """The survey costs more than the respondent's remaining budget."""

    def __init__(self, detail: str) -> None:
        super().__init__("budget", detail)


class UnknownChoice(FranklyError):
    """An answer is missing, unexpected or not one of the choices.

    `valid` lists the valid choices or question ids.
    """

    def __init__(self, question: str | None, valid: Sequence[str], detail: str) -> None:
        super().__init__(
            f"{detail}; valid: {', '.join(valid)}", code="unknown_choice", field=question
        )
        self.valid = tuple(valid)


class AlreadyAnswered(FranklyError):
    """This respondent has already answered this survey; `receipt` is the state of that answer."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(
            "this survey has already been answered here; the first answer remains valid",
            code="already_answered",
        )
        self.receipt = receipt


class Disabled(FranklyError):
    """The client was opened with enabled=False and has no survey; check `client.enabled` first."""

    def __init__(self) -> None:
        super().__init__(
            "this client is switched off and has no survey; check client.enabled", code="disabled"
        )


class SurveyClosed(FranklyError):
    """The survey closed before anything was drawn; a later closing is reported in the receipt."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code=Problem.CLOSED.code, field="closes")


class StoreError(FranklyError):
    """The store cannot be read or written, so no new report was sent; there is no fallback."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="store")


class NetworkError(FranklyError):
    """The server cannot be reached, or its response cannot be used; trying again may help."""

    def __init__(self, detail: str, code: str = "network") -> None:
        super().__init__(detail, code=code)
