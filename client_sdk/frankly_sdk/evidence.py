# SPDX-License-Identifier: Apache-2.0
"""What this install has kept because it proves that a server told different people different things."""

import json
from dataclasses import dataclass
from pathlib import Path

from frankly_sdk.store import Store


@dataclass(frozen=True, slots=True)
class Evidence:
    """One signed piece: a survey's envelope (``kind`` survey) or a log's head (``kind`` checkpoint), byte for byte.

    Pieces come in pairs that contradict each other: two envelopes of one survey and version, or two heads of one log.
    digest : of the survey's payload, or of the head's bytes. Nothing in it is about the respondent.
    """

    kind: str
    digest: str
    data: bytes


def evidence(store: str | Path) -> list[Evidence]:
    """Return everything kept in a store, by digest: to be shown to whoever runs the survey, or to all.

    Raises StoreError.
    """
    kept = Store(Path(store))
    try:
        return [Evidence(_kind(data), digest, data) for digest, data in sorted(kept.evidence().items())]
    finally:
        kept.close()


def _kind(data: bytes) -> str:
    try:
        return "survey" if isinstance(json.loads(data), dict) else "checkpoint"
    except ValueError:
        return "checkpoint"
