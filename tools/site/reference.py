# SPDX-License-Identifier: Apache-2.0
"""docs/api.md, written from docs/openapi.json and from docstrings: python -m tools.site.reference."""

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "api.md"
MODULES: Final = {
    "frankly_sdk": "On the device.",
    "frankly_sdk.aio": "The same client for asyncio; [Python SDK](sdk.md#asyncio) has an example.",
    "frankly_sdk.tokens": "Tokens of an outside issuer, which recognises none of them.",
    "frankly_sdk.blind_rsa": "Blind signatures of RFC 9474, on the requester's side.",
    "frankly_sdk.testing": "For the tests of apps: a simulated server, network and clock.",
    "frankly_analyst": "For analysts: estimates over HTTP.",
    "frankly_server.design": "The design engine; [Designing a mechanism](design.md) has examples.",
    "frankly_server.estimate": "The mathematics of estimates; see [Estimates](estimates.md).",
    "frankly_protocol.audit": "The exact verifier of every privacy notion.",
    "frankly_protocol.mechanisms": "Mechanisms with integer weights.",
}
"""Public modules; the names in their `__all__` are public."""

_HEAD = """# API

Written by `python -m tools.site.reference` from `docs/openapi.json` and docstrings: do not edit by hand.

- [HTTP](#http): every route; the machine-readable form is [openapi.json](openapi.json).
- [Python](#python): the contents of each public module.
- Commands: `frankly --help`, and `--help` after every verb.

HTTP errors are `application/problem+json`; codes and classes are in [Errors](errors.md). Every route may return the
errors {everywhere}; a route lists only further ones.

## HTTP
"""


def page() -> str:
    """Return the whole page."""
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    everywhere = _everywhere(document)
    head = _HEAD.format(everywhere=", ".join(everywhere))
    sections = [head, *_routes(document, everywhere), "\n## Python\n"]
    for name, summary in MODULES.items():
        sections += [f"\n### {name}\n", f"\n{summary}\n", *_module(name)]
    return re.sub(r"\n{3,}", "\n\n", "".join(sections)).rstrip() + "\n"


def _everywhere(document: dict[str, Any]) -> list[str]:
    """Return the error statuses that every route lists."""
    methods = [
        route
        for path in document["paths"].values()
        for name, route in path.items()
        if name != "parameters"
    ]
    listed = [{code for code in route.get("responses", {}) if code >= "400"} for route in methods]
    return sorted(set.intersection(*listed))


def _routes(document: dict[str, Any], everywhere: list[str]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        shared = methods.get("parameters", [])
        for method, route in methods.items():
            if method == "parameters":
                continue
            yield f"\n### {method.upper()} {path}\n\n{_on_one_line(route.get('summary', ''))}\n"
            if description := route.get("description"):
                yield f"\n{_on_one_line(description)}\n"
            parameters = [
                _resolved(document, reference)
                for reference in [*shared, *route.get("parameters", [])]
            ]
            if parameters:
                yield "\n| parameter | in | type | meaning |\n|---|---|---|---|\n"
                yield from map(_parameter, parameters)
            body = route.get("requestBody", {}).get("content", {})
            if body:
                yield f"\nBody: {', '.join(f'`{kind}`' for kind in body)}.\n"
            answers = route.get("responses", {})
            successes = [code for code in answers if code < "400"]
            own_refusals = [code for code in answers if code >= "400" and code not in everywhere]
            refusals = f"; refusals {', '.join(own_refusals)}" if own_refusals else ""
            yield f"\nAnswers {', '.join(successes)}{refusals}.\n"


def _resolved(document: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in value:
        return value
    node: Any = document
    for key in value["$ref"].removeprefix("#/").split("/"):
        node = node[key]
    resolved: dict[str, Any] = node
    return resolved


def _parameter(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    kind = schema.get("type") or "/".join(
        option.get("type", "") for option in schema.get("anyOf", []) if option.get("type")
    )
    meaning = _on_one_line(
        parameter.get("description") or schema.get("description") or schema.get("title") or ""
    )
    if "default" in schema and schema["default"] is not None:
        meaning = f"{meaning} (default `{json.dumps(schema['default'])}`)".strip()
    return f"| `{parameter['name']}` | {parameter['in']} | {kind or 'text'} | {meaning} |\n"


def _module(name: str) -> Iterator[str]:
    module = import_module(name)
    for public in sorted(module.__all__, key=str.lower):
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isroutine(value):
            yield f"\n#### `{public}`\n"
            yield from _described(public, value)
            if inspect.isclass(value):
                yield from _members(value)


def _members(kind: type) -> Iterator[str]:
    lines = []
    for name, value in vars(kind).items():
        target = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        target = target.fget if isinstance(target, property) else target
        if name.startswith("_") or not inspect.isroutine(target) or not inspect.getdoc(target):
            continue
        call = "" if isinstance(value, property) else _signature(target)
        kind_of_call = "async " if _is_async(target) else ""
        lines.append(
            f"- `{kind_of_call}{name}{call}`: {_on_one_line(inspect.getdoc(target) or '')}\n"
        )
    if lines:
        yield "\n" + "".join(lines)


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _described(name: str, value: Any) -> Iterator[str]:
    signature = "" if inspect.isclass(value) and issubclass(value, Exception) else _signature(value)
    if signature:
        yield f"\n`{name}{signature}`\n"
    docstring = inspect.getdoc(value) or ""
    if docstring and not docstring.startswith(
        f"{name}("
    ):  # dataclasses generate their signature as docstring
        yield f"\n{_paragraphs(docstring)}\n"


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<(?:function|object|[\w.]+ object)[^>]*>", "…", text)
    text = re.sub(r"\b(?:[a-z_]+\.)+([A-Za-z_]\w*)", r"\1", text)
    return text.replace("|", "or").replace("`", "'")


def _on_one_line(text: str) -> str:
    """Return a text on one line, with angle brackets, bars and stars escaped."""
    flat = " ".join(text.split())
    return flat.replace("``", "`").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _paragraphs(text: str) -> str:
    return "\n\n".join(_on_one_line(paragraph) for paragraph in text.split("\n\n"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
