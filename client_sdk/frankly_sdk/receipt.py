# SPDX-License-Identifier: Apache-2.0
"""What became of an answer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Receipt:
    """status: ``sent`` (acknowledged), ``queued`` (sealed here, will be sent again) or ``refused`` (final).

    code : stable slug, such as accepted, duplicate, network, closed. detail : plain words.
    """

    status: str
    code: str
    detail: str
