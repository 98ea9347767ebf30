# SPDX-License-Identifier: Apache-2.0
"""Text form of times: only one form is accepted."""

from datetime import datetime

import pytest
from frankly_protocol.clock import FixedClock, SystemClock, format_time, parse_time

from tests.frankly_protocol.samples import NOW


def test_times_survive_their_text() -> None:
    assert parse_time(format_time(NOW)) == NOW
    assert FixedClock(NOW).now() == NOW
    assert SystemClock().now().utcoffset() is not None


OTHER_FORMS = ["", "2026-06-01", "2026-06-01T12:00:00+00:00", "2026-6-01T12:00:00ZZ", "٢026-06-01T12:00:00Z",
               "2026-06-01 12:00:00Z", "2026-06-01T12:00: 0Z"]  # fmt: skip
IMPOSSIBLE = ["2026-02-30T00:00:00Z", "2025-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-06-01T24:00:00Z",
              "2026-06-01T12:60:00Z", "2026-06-30T23:59:60Z", "0000-01-01T00:00:00Z"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [(text, "write a UTC time as 2026-") for text in OTHER_FORMS]
    + [(text, "an impossible date or time") for text in IMPOSSIBLE],
)
def test_other_forms_and_impossible_times_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}"):
        parse_time(text)


def test_naive_times_are_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        format_time(datetime(2026, 1, 1))
