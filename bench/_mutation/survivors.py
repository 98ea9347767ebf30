# SPDX-License-Identifier: Apache-2.0
"""Stored survivors: mutants that no test detects, each with the reason why it is accepted."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("survivors.toml")
KINDS = ("equivalent", "harmless")
"""equivalent : same results in every case that can occur, perhaps slower. harmless : different
results without harm: other wording, more work, a generous limit that is one larger."""
_FIELDS = {"file", "function", "line", "change", "kind", "why"}
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Survivor:
    """Kind and reason of one survivor."""

    kind: str
    why: str


def stored(path: Path = LIST) -> Mapping[Key, Survivor]:
    """Return the survivors by mutant key. Raises ValueError for incomplete or repeated entries."""
    entries = tomllib.loads(path.read_text("utf-8")).get("survivor", [])
    found: dict[Key, Survivor] = {}
    for entry in entries:
        if set(entry) != _FIELDS or entry["kind"] not in KINDS or not entry["why"].strip():
            raise ValueError(f"invalid entry: {entry}")
        key = (entry["file"], entry["function"], entry["line"], entry["change"])
        if key in found:
            raise ValueError(f"repeated entry: {key}")
        found[key] = Survivor(entry["kind"], entry["why"])
    return found


def entry(key: Key) -> str:
    """Return the beginning of an entry for a new survivor, to be completed by hand."""
    names = ("file", "function", "line", "change")
    lines = [f"{name} = {_quoted(value)}" for name, value in zip(names, key, strict=True)]
    return "\n".join(["[[survivor]]", *lines, 'kind = ""', 'why = ""', ""])


def _quoted(text: str) -> str:
    """Return a TOML string, literal if possible."""
    if "'" not in text and "\t" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'
