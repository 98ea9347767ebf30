# SPDX-License-Identifier: Apache-2.0
"""Tables of counts that admins upload (bad input 53): accepted formats, and errors that name a line."""

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.csv_prior import MAX_BYTES, CountTable, public_questions, read_counts

WANTED = CountTable(("no", "yes"), ("low", "high"), (("120", "30"), ("4", "0.5")))

FINE = {
    "plain": b",no,yes\nlow,120,30\nhigh,4,0.5\n",
    "byte order mark": b"\xef\xbb\xbf,no,yes\nlow,120,30\nhigh,4,0.5",
    "CRLF": b",no,yes\r\nlow,120,30\r\nhigh,4,0.5\r\n",
    "quotes and spaces": b'"x","no",yes\nlow, 120 ,30\n"high",4,0.5\n\n',
}


@pytest.mark.parametrize("name", FINE)
def test_a_fine_table_is_read(name: str) -> None:
    table = read_counts(FINE[name])
    assert table == WANTED
    assert table.small_cells == 1


# Name: (bytes, code, part of the detail)
BAD = {
    "empty": (b"", "prior_shape", "a line with the answers"),
    "header only": (b",no,yes\n", "prior_shape", "a line with the answers"),
    "empty row": (b",no,yes\nlow,1,2\n\nhigh,1,2\n", "prior_shape", "line 3: the line is empty"),
    "decimal comma": (
        b",no,yes\nlow,0,5,0,5\n",
        "prior_shape",
        "line 2: 4 numbers, but the first line names 2 answers; write",
    ),
    "quoted decimal comma": (
        b',no,yes\nlow,"0,5",1\n',
        "prior_value",
        "line 2: write decimals with a point",
    ),
    "quoted newline": (b',no,yes\n"lo\nw",1,2\n', "prior_value", "line 2: a quoted text runs over"),
    "stray quote": (b',no,yes\n"lo"w,1,2"\n', "prior_value", "line 2: a quoted text"),
    "ragged": (b",no,yes\nlow,1,2\nhigh,1\n", "prior_shape", "line 3: 1 numbers"),
    "negative": (b",no,yes\nlow,1,-2\n", "prior_value", "line 2: a cell is"),
    "NaN": (b",no,yes\nlow,1,NaN\n", "prior_value", "line 2"),
    "exponent": (b",no,yes\nlow,1,1e3\n", "prior_value", "line 2"),
    "Arabic digits": (",no,yes\nlow,1,\u0663\n".encode(), "prior_value", "line 2"),
    "no numbers": (b"no\nlow\n", "prior_shape", "line 1: separate"),
    "semicolons": (b";no;yes\nlow;1;2\n", "prior_shape", "line 1: separate"),
    "two rows of one name": (b",no,yes\nlow,1,2\nlow,3,4\n", "prior_shape", "the same name"),
    "Latin-1": (b",no,yes\nl\xf6w,1,2\n", "prior_value", "line 2: save the file as UTF-8"),
    "NUL": (b",no,yes\nlow,1,2\x00\n", "prior_value", "line 2"),
    "too many rows": (
        b",no\n" + b"".join(b"r%d,1\n" % i for i in range(65)),
        "prior_shape",
        "at most 64",
    ),
    "too large": (b"x" * (MAX_BYTES + 1), "prior_shape", "at most"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_refused_with_its_line(name: str) -> None:
    data, code, detail = BAD[name]
    with pytest.raises(InvalidInput) as refused:
        read_counts(data)
    assert (refused.value.code, refused.value.field) == (code, "counts")
    assert detail in refused.value.detail


def _question(name: str, text: str, **choices: str) -> dict[str, object]:
    listed = [
        {"id": choice, "label": {"en": label, "de": label + "en"}}
        for choice, label in choices.items()
    ]
    return {"id": name, "text": {"en": text}, "choices": listed}


PUBLIC = public_questions(
    [
        _question("region", "Where?", n="North", s="South"),
        _question("age", "How old?", y="Young", o="Old"),
    ]
)
PLACES = [("n", "y"), ("n", "o"), ("s", "y"), ("s", "o")]
LINES = [
    f"{region},{age},{secret},{10 * i + j},{j}"
    for i, (region, age) in enumerate(PLACES)
    for j, secret in enumerate(["low", "high"], 5)
]
STRATA = tuple(
    ({"region": region, "age": age}, ((str(10 * i + 5), "5"), (str(10 * i + 6), "6")))
    for i, (region, age) in enumerate(PLACES)
)


@pytest.mark.parametrize("header", ["region,age,hiv,no,yes", "Where?,How OLD?,,no,yes"])
def test_counts_for_each_stratum_have_a_column_for_each_public_question(header: str) -> None:
    table = read_counts("\n".join([header, *LINES]).encode(), PUBLIC)
    assert (table.joint, table.answers, table.secrets) == ((), ("no", "yes"), ("low", "high"))
    assert table.strata == STRATA
    assert table.small_cells == 0


def test_names_order_the_rows_within_a_stratum_too() -> None:
    swapped = [line for pair in zip(LINES[1::2], LINES[::2], strict=True) for line in pair]
    mixed = "\n".join(
        ["age,region,hiv,no,yes", *(_swap(line) for line in [*LINES[:2], *swapped[2:]])]
    ).encode()
    table = read_counts(mixed, PUBLIC)
    assert [({**when}, rows) for when, rows in table.strata] == [
        ({**when}, rows) for when, rows in STRATA
    ]


def _swap(line: str) -> str:
    region, age, cells = line.split(",", 2)
    return f"{age.upper()},{'North' if region == 'n' else 'southen'},{cells}"


def test_without_these_columns_counts_are_of_everybody() -> None:
    assert read_counts(FINE["plain"], PUBLIC) == WANTED


HEADER = "region,age,hiv,no,yes"
BAD_STRATA = {
    "one question of two": (
        ["region,hiv,no,yes", "n,low,1,2"],
        "line 1: counts for each stratum begin with the columns",
    ),
    "no secret": (
        ["region,age", "n,y"],
        "line 1: counts for each stratum begin with the columns region, age",
    ),
    "an unknown choice": (
        [HEADER, "n,y,low,5,5", "e,y,low,5,5"],
        "line 3: region has the choices n, s",
    ),
    "twice": ([HEADER, "n,y,low,5,5", "n,y,low,5,5"], "line 3: two lines have the same name"),
    "a secret is missing": (
        [HEADER, *LINES[:-1]],
        "with zeros if it has no such people: s, o does not match",
    ),
    "a number is missing": (
        [HEADER, "n,y,low,5"],
        "line 2: 1 numbers, but the first line names 2 answers",
    ),
    "a word for a number": ([HEADER, "n,y,low,5,many"], "line 2: a cell is a count or a share"),
    "too many lines": (
        ["region,age,hiv,no"] + [f"n,y,r{i},1" for i in range(257)],
        "at most 256 lines",
    ),
}


@pytest.mark.parametrize("name", BAD_STRATA)
def test_counts_for_each_stratum_are_refused_with_their_line(name: str) -> None:
    lines, detail = BAD_STRATA[name]
    with pytest.raises(InvalidInput) as refused:
        read_counts("\n".join(lines).encode(), PUBLIC)
    assert (refused.value.code in ("prior_shape", "prior_value"), refused.value.field) == (
        True,
        "counts",
    )
    assert detail in refused.value.detail


@pytest.mark.parametrize(
    "strata", [None, "north", [3], [{"id": 3}], [{"id": "region", "choices": [1, {"id": 2}]}]]
)
def test_malformed_questions_are_left_to_the_reader_of_definitions(strata: object) -> None:
    assert all(not question.choices for question in public_questions(strata))
