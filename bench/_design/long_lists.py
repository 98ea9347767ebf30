# SPDX-License-Identifier: Apache-2.0
"""Item 5, long lists: equally likely answers under ldp; mechanism size, verification time."""

import json
import time
from collections.abc import Iterator
from fractions import Fraction

from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import require_private

from _design.designs import designed, request
from _design.row import Progress, Row

LIMITS_S = {64: 1.0, 256: 2.0, 1000: 5.0}
QUICK_ANSWERS = (64,)
_MOST_BYTES, _MOST_VERIFY_S = 2048, 0.05


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line for each objective and number of answers."""
    for answers in QUICK_ANSWERS if quick else LIMITS_S:
        claim = answer_ldp(Fraction(1))
        for objective in ("variance", "information"):
            run = designed(request(Prior.from_rows([[1] * answers]), [claim], objective), 60)
            design, limit_s = run.design, LIMITS_S[answers]
            size = len(json.dumps(design.mechanism.params_json()))
            start = time.perf_counter()
            require_private(design.mechanism, *design.claims)
            verify_s = time.perf_counter() - start
            progress(f"{answers} answers, {objective}: {run.seconds:.1f} s")
            yield Row(
                item=5,
                case=f"ldp ε=1, {answers} equally likely answers, {objective}: {size} bytes, "
                f"verified in {1000 * verify_s:.2g} ms",
                value=design.value,
                bound=design.bound,
                gap=None if design.gap is None else design.gap / design.value,
                seconds=run.seconds,
                baseline="",
                baseline_value=None,
                baseline_seconds=None,
                limit=f"certified, ≤ {limit_s:g} s, ≤ 2 KB, verified in ≤ 50 ms",
                holds=design.certified
                and run.seconds <= limit_s
                and size <= _MOST_BYTES
                and verify_s <= _MOST_VERIFY_S,
            )
