# SPDX-License-Identifier: Apache-2.0
"""Differences between two definitions, one line per field."""

from typing import Any

from frankly_design.requests.faults import field_path


def differences(old: Any, new: Any) -> list[str]:
    """Return one line per added (+), removed (-) or changed (~) field of two JSON values."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    lines = []
    for path in [*before, *(path for path in after if path not in before)]:
        name = field_path(path)
        if path not in after:
            lines.append(f"- {name}: {_short(before[path])}")
        elif path not in before:
            lines.append(f"+ {name}: {_short(after[path])}")
        elif before[path] != after[path]:
            lines.append(f"~ {name}: {_short(before[path])} → {_short(after[path])}")
    return lines


def _short(text: str) -> str:
    """Return a text without the content of an image, which has thousands of characters."""
    kind, _, content = text.partition(",")
    return f"{kind} ({len(content):,} characters)" if kind.startswith("data:") else text


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], str]]:
    """Flatten maps and lists of maps; a list of scalars (a row of a prior) stays one leaf."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in _leaves(value[key], (*path, key))]
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return [leaf for i, item in enumerate(value) for leaf in _leaves(item, (*path, i))]
    if isinstance(value, list):
        return [(path, "[" + ", ".join(map(str, value)) + "]")]
    return [(path, str(value))]
