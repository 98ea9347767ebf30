# SPDX-License-Identifier: Apache-2.0
"""Evidence of equivocation: signed documents and log heads that contradict each other."""

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from frankly_sdk.store import Store


@dataclass(frozen=True, slots=True)
class Evidence:
    """The bytes of a survey's envelope (``kind`` survey) or a log's head (``kind`` checkpoint).

    Usually two pieces contradict each other: two envelopes of one survey, or two heads of one log.
    After a log has been renamed, its old head is stored alone. Evidence contains nothing about the
    respondent.

    digest : digest of the survey's payload, or of the head's bytes.
    """

    kind: str
    digest: str
    data: bytes


def evidence(store: str | Path) -> list[Evidence]:
    """Return the evidence in a store, sorted by digest.

    It can safely be shown to the survey's operator or published.

    Raises StoreError.
    """
    with closing(Store(Path(store))) as stored:
        return [
            Evidence(_kind(data), digest, data)
            for digest, data in sorted(stored.evidence().items())
        ]


def _kind(data: bytes) -> str:
    try:
        return "survey" if isinstance(json.loads(data), dict) else "checkpoint"
    except ValueError:
        return "checkpoint"
