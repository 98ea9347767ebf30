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


@pytest.mark.parametrize(
    "text",
    ["", "2026-06-01", "2026-06-01T12:00:00+00:00", "2026-6-01T12:00:00ZZ", "٢026-06-01T12:00:00Z"],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_time(text)


def test_naive_times_are_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        format_time(datetime(2026, 1, 1))
