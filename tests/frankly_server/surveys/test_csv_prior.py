# SPDX-License-Identifier: Apache-2.0
"""Tables of counts that admins upload (BAD_INPUTS 53): what is fine, and the line that is not."""

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.csv_prior import MAX_BYTES, CountTable, read_counts

WANTED = CountTable(("no", "yes"), ("low", "high"), (("120", "30"), ("4", "0.5")))

FINE = {
    "plain": b",no,yes\nlow,120,30\nhigh,4,0.5\n",
    "byte order mark": b"\xef\xbb\xbf,no,yes\nlow,120,30\nhigh,4,0.5",
    "CRLF": b",no,yes\r\nlow,120,30\r\nhigh,4,0.5\r\n",
    "quotes and spaces": b'"x","no",yes\nlow, 120 ,30\n"high",4,0.5\n\n',
}


@pytest.mark.parametrize("name", FINE)
def test_it_is_read(name: str) -> None:
    found = read_counts(FINE[name])
    assert found == WANTED
    assert found.small_cells == 1


# name: (bytes, code, what the detail says)
BAD = {
    "empty": (b"", "prior_shape", "a line with the answers"),
    "header only": (b",no,yes\n", "prior_shape", "a line with the answers"),
    "empty row": (b",no,yes\nlow,1,2\n\nhigh,1,2\n", "prior_shape", "line 3: the line is empty"),
    "decimal comma": (
        b",no,yes\nlow,0,5,0,5\n",
        "prior_shape",
        "line 2: 4 numbers, the first line names 2 answers; write",
    ),
    "quoted decimal comma": (b',no,yes\nlow,"0,5",1\n', "prior_value", "line 2: write decimals with a point"),
    "quoted newline": (b',no,yes\n"lo\nw",1,2\n', "prior_value", "line 2: a quoted text runs over"),
    "stray quote": (b',no,yes\n"lo"w,1,2"\n', "prior_value", "line 2: a quoted text"),
    "ragged": (b",no,yes\nlow,1,2\nhigh,1\n", "prior_shape", "line 3: 1 numbers"),
    "negative": (b",no,yes\nlow,1,-2\n", "prior_value", "line 2: a cell is"),
    "NaN": (b",no,yes\nlow,1,NaN\n", "prior_value", "line 2"),
    "exponent": (b",no,yes\nlow,1,1e3\n", "prior_value", "line 2"),
    "Arabic digits": (",no,yes\nlow,1,\u0663\n".encode(), "prior_value", "line 2"),
    "no numbers": (b"no\nlow\n", "prior_shape", "line 1: separate"),
    "semicolons": (b";no;yes\nlow;1;2\n", "prior_shape", "line 1: separate"),
    "two of a name": (b",no,yes\nlow,1,2\nlow,3,4\n", "prior_shape", "the same name"),
    "Latin-1": (b",no,yes\nl\xf6w,1,2\n", "prior_value", "line 2: save the file as UTF-8"),
    "NUL": (b",no,yes\nlow,1,2\x00\n", "prior_value", "line 2"),
    "too many rows": (b",no\n" + b"".join(b"r%d,1\n" % i for i in range(65)), "prior_shape", "at most 64"),
    "too large": (b"x" * (MAX_BYTES + 1), "prior_shape", "at most"),
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused_with_its_line(name: str) -> None:
    data, code, words = BAD[name]
    with pytest.raises(InvalidInput) as refused:
        read_counts(data)
    assert (refused.value.code, refused.value.field) == (code, "counts")
    assert words in refused.value.detail
