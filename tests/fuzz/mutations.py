# SPDX-License-Identifier: Apache-2.0
"""Nearly valid bytes, drawn by hypothesis so that hypothesis can shrink a failing example."""

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

WORDS = [
    *(
        b"null",
        b"true",
        b"NaN",
        b"-Infinity",
        b"1.5",
        b"1e999999999",
        b"-0",
        b"0",
        b"01",
        b"9" * 5000,
    ),
    *(
        b"9007199254740992",
        b"-1",
        b'""',
        b"{}",
        b"[]",
        b'"a":1,',
        b'{"a":' * 50,
        b"[" * 100_000,
        b"]" * 9,
    ),
    *(
        b"\xff",
        b"\x00",
        b"\xed\xa0\x80",
        b'"\\ud800"',
        "é€\u202e".encode(),
        b"\n",
        b"\n\n",
        b" " * 70_000,
        b"=",
    ),
    *(
        "— x y\n".encode() * 70,
        b"==",
        b"index 99999999999999999\n",
        b"A" * 4000,
        b"%00",
        b"@",
        b"://",
        b"[::1",
    ),
]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    2**53,
    2**70,
    10**39,
    "",
    "x",
    "é",
    "\x00",
    [],
    {},
    [[]],
    [1, 2],
    {"a": 1},
    1.5,
]


class Seeds(tuple[bytes, ...]):
    """Honest bytes; hypothesis prints only their index."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{len(self)} seeds"


@st.composite
def altered_bytes(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Draw a seed with one to four edits: bytes changed, lost or repeated, words or a seed inserted."""
    data = seeds[draw(st.integers(0, len(seeds) - 1))]
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted(draw(st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))))
        kind = draw(st.sampled_from("change lose repeat many word seed cut".split()))
        if kind == "change":
            data = data[:start] + bytes([draw(st.integers(0, 255))]) + data[start + 1 :]
        elif kind == "lose":
            data = data[:start] + data[end:]
        elif kind == "repeat":
            data = data[:end] + data[start:]
        elif kind == "many":
            data = (
                data[:start]
                + data[start : start + 40] * draw(st.sampled_from([2, 70, 300, 3000]))
                + data[start:]
            )
        elif kind == "word":
            data = (
                data[:start]
                + draw(st.sampled_from(WORDS))
                + data[start if draw(st.booleans()) else end :]
            )
        elif kind == "seed":
            donor = seeds[draw(st.integers(0, len(seeds) - 1))]
            data = data[:start] + donor[len(donor) // 2 :]
        else:
            data = data[:start]
    return data


@st.composite
def altered_json(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Draw a JSON seed with one to three values changed, removed or doubled, again in canonical form."""
    body = json.loads(seeds[draw(st.integers(0, len(seeds) - 1))])
    for _ in range(draw(st.integers(1, 3))):
        parent: Any = None
        key: Any = None
        target = body
        while (
            isinstance(target, dict | list)
            and target
            and (parent is None or draw(st.integers(0, 9)))
        ):
            parent, key = (
                target,
                draw(
                    st.sampled_from(
                        sorted(target) if isinstance(target, dict) else range(len(target))
                    )
                ),
            )
            target = target[key]
        if parent is None:
            break
        kind = draw(st.sampled_from("odd odd near lose double".split()))
        if kind == "lose":
            del parent[key]
        elif kind == "near" and type(target) is int:
            parent[key] = target + draw(st.sampled_from([1, -1, 1 << 20, -(1 << 44)]))
        elif kind == "double" and isinstance(parent, list):
            parent.insert(key, deepcopy(target))
        else:
            parent[key] = deepcopy(
                draw(st.sampled_from(ODD))
            )  # later edits must not change the list itself
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def hostile(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Draw bytes that a network may send in place of one of the seeds."""
    ways = [altered_bytes(Seeds(seeds)), altered_bytes(Seeds(seeds)), st.binary(max_size=300)]
    listed = Seeds(seed for seed in seeds if seed[:1] in (b"{", b"["))
    return st.one_of(*ways, *([altered_json(listed)] * 3 if listed else []))
