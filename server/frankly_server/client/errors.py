# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on the analyst's side.

FranklyError
 ├─ Unreachable   no answer, or none that is ours: trying again may help
 └─ Refused       the server said no; `.code`, `.status` and `.field` say why
"""

from frankly_protocol.errors import FranklyError


class Unreachable(FranklyError):
    """The server gave no answer, or none that is ours; the same question may be asked again."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="network")


class Refused(FranklyError):
    """The server answered with a problem; ``status`` is the HTTP status."""

    def __init__(self, detail: str, *, code: str, status: int, field: str | None = None) -> None:
        super().__init__(detail, code=code, field=field)
        self.status = status
