# SPDX-License-Identifier: Apache-2.0
"""Records of the data files: counts and refusals."""

from collections import Counter
from pathlib import Path

import pytest
from frankly_protocol.errors import InvalidInput

from papers.records import COLUMNS, Records, read_records
from tests.papers.figures.people import VALUES

HEAD = ",".join(VALUES)
ROW = ",".join(values[0] for values in VALUES.values())


def test_counts_equal_those_of_the_file(people: Path, records: Records) -> None:
    lines = [line.split(",") for line in people.read_text().splitlines()]
    sex, race = lines[0].index("sex"), lines[0].index("race")
    counted = Counter((line[sex], line[race]) for line in lines[1:])
    expected = [[counted[s, r] for r in sorted(VALUES["race"])] for s in sorted(VALUES["sex"])]
    assert records.joint("sex", "race") == expected
    assert len(records) == 400
    filtered = records.joint("relationship", "sex", ("relationship", "Other-relative"))
    assert len(filtered) == 3
    assert sum(map(sum, filtered)) == sum(
        line[lines[0].index("relationship")] != "Other-relative" for line in lines[1:]
    )
    assert records.prior("sex", "race").joint == tuple(map(tuple, expected))


BAD: dict[str, tuple[str | bytes, str]] = {
    "no header": (ROW, "lacks"),
    "a column is missing": (HEAD.replace("race", "rase") + "\n" + ROW, "race"),
    "no rows": (HEAD + "\n", "nothing else"),
    "nothing at all": ("", "lacks"),
    "a row is short": (HEAD + "\n" + ROW + "\n" + "Private,10th\n", "line 3"),
    "a value is empty": (HEAD + "\n" + ROW.replace("Black", ""), "line 2"),
    "bytes of another code": (b"\xff\xfe" + HEAD.encode("utf-16-le"), "not CSV"),
    "an open quote": (HEAD + '\n"' + ROW, "not CSV"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_not_the_data_is_refused(tmp_path: Path, case: str) -> None:
    content, message = BAD[case]
    file = tmp_path / "people.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidInput, match=message) as refused:
        read_records(file)
    assert refused.value.field == "--adult"


@pytest.mark.parametrize("name", ["none.csv", "."])
def test_the_error_for_a_missing_file_says_what_to_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="give the Adult data"):
        read_records(tmp_path / name)


def test_other_columns_are_not_stored(records: Records) -> None:
    assert all(set(row) == set(COLUMNS) for row in records.rows)
