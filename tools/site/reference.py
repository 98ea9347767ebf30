# SPDX-License-Identifier: Apache-2.0
"""docs/api.md, from docs/openapi.json, and the table of docs/settings.md: python -m tools.site.reference."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from frankly_server.settings import Settings

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "api.md"
SETTINGS: Final = ROOT / "docs" / "settings.md"
_TABLE: Final = re.compile(r"(?<=<!-- by `python -m tools.site.reference` -->\n\n)(\|.*\n)+")

_HEAD: Final = """# HTTP API

Written by `python -m tools.site.reference` from [openapi.json](openapi.json): do not edit by hand.

Errors are `application/problem+json`; codes and classes are in [Errors](errors.md). Every route may return the
errors {everywhere}; a route lists only further ones.
"""


def page() -> str:
    """Return the page of the routes."""
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    everywhere = _everywhere(document)
    head = _HEAD.format(everywhere=", ".join(everywhere))
    text = "".join([head, *_routes(document, everywhere)])
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def settings_page() -> str:
    """Return the page of the settings, with the table of the server's settings written again."""
    return _TABLE.sub(lambda _: settings_table(), SETTINGS.read_text(encoding="utf-8"))


def settings_table() -> str:
    """Return a table of the server's settings: variable, default, legal values, meaning."""
    rows = ["| variable | default | values | meaning |\n|---|---|---|---|\n"]
    properties = Settings.model_json_schema()["properties"]
    for name, field in Settings.model_fields.items():
        default = json.dumps(field.default, default=str).strip('"')
        shown = f"`{default}`" if field.default not in (None, "") else "none"
        values = _values(properties[name])
        rows.append(f"| `FRANKLY_{name.upper()}` | {shown} | {values} | {field.description} |\n")
    return "".join(rows)


def _values(schema: dict[str, Any]) -> str:
    schema = next((option for option in schema.get("anyOf", ()) if "type" in option), schema)
    if schema["type"] == "boolean":
        return "`true` or `false`"
    if schema["type"] == "string":
        least = schema.get("minLength", 0)
        return f"at least {least} characters" if least > 1 else "text"
    least = schema.get("minimum", f"above {schema.get('exclusiveMinimum')}")
    return f"{least} to {schema['maximum']:,.0f}".replace(",", " ")


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
            yield f"\n## {method.upper()} {path}\n\n{_on_one_line(route.get('summary', ''))}\n"
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


def _on_one_line(text: str) -> str:
    """Return a text on one line, with angle brackets, bars and stars escaped."""
    flat = " ".join(text.split())
    return flat.replace("``", "`").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SETTINGS.write_text(settings_page(), encoding="utf-8")
