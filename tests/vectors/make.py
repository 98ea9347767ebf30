# SPDX-License-Identifier: Apache-2.0
"""Command that writes the test vectors: python -m tests.vectors.make (see docs/conformance.md).

This implementation computes the vectors; test_vectors.py compares them with an implementation that
shares no code.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.vectors.from_answers import answers
from tests.vectors.from_bytes import canonical_json, envelopes
from tests.vectors.from_documents import acceptance, good_documents, privacy_documents
from tests.vectors.from_numbers import estimates, sampling
from tests.vectors.from_plans import plans
from tests.vectors.from_replies import replies
from tests.vectors.from_sources import sources
from tests.vectors.from_trust import key_chains, log_proofs

HERE = Path(__file__).parent
FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "canonical": canonical_json,
    "envelopes": envelopes,
    "keys": key_chains,
    "log": log_proofs,
    "documents": good_documents,
    "privacy": privacy_documents,
    "acceptance": acceptance,
    "answers": answers,
    "sampling": sampling,
    "plans": plans,
    "sources": sources,
    "replies": replies,
    "estimates": estimates,
}


def text(name: str) -> str:
    """Return one file as it is stored, with the same bytes on every machine."""
    lines = []
    for key, value in FILES[name]().items():
        # Each case is one line, so that a difference between two versions is readable.
        if isinstance(value, list) and value:
            rows = ",\n  ".join(_dumps(entry) for entry in value)
            lines.append(f"{_dumps(key)}: [\n  {rows}\n]")
        else:
            lines.append(f"{_dumps(key)}: {_dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def main() -> None:
    """Write every file."""
    for name in FILES:
        (HERE / f"{name}.json").write_text(text(name), encoding="ascii")


if __name__ == "__main__":
    main()
