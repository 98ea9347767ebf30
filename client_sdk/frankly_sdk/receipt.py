# SPDX-License-Identifier: Apache-2.0
"""Receipt of an answer: sent, queued, refused or disabled."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Receipt:
    """The state of an answer, for the app to show.

    status : ``sent`` (acknowledged), ``queued`` (sealed here, to be sent later), ``refused``
        (permanently) or ``disabled`` (the app has switched the client off).
    code : stable slug, such as accepted, duplicate, network or closed.
    detail : a sentence to show to people.
    """

    status: str
    code: str
    detail: str
