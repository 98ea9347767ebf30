# SPDX-License-Identifier: Apache-2.0
"""Texts of the browser SDK, written from the files that the Python SDK reads.

`python -m tools.languages` writes client_sdk/browser/src/words.LANGUAGE.js.
"""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ROOT / "shared" / "frankly_protocol" / "explanation" / "texts"
SOURCES = ROOT / "client_sdk" / "browser" / "src"


def modules() -> dict[Path, str]:
    """Return the path and the contents of the module of each language."""
    return {
        SOURCES / f"words.{path.stem}.js": _module(json.loads(path.read_text("utf-8")))
        for path in sorted(TEXTS.glob("*.json"))
    }


def _module(texts: dict[str, object]) -> str:
    strings = texts.pop("element")
    name = texts.pop("language")
    texts.pop("page")  # only servers make these pages
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        f"/** {name}; written by `python -m tools.languages` from shared/frankly_protocol/explanation/texts/. */\n\n"
        "/** Texts of the element. */\n"
        f"export const strings = {json.dumps(strings, ensure_ascii=False, indent=2)};\n\n"
        "/** Texts of explanations. */\n"
        f"export const texts = {json.dumps(texts, ensure_ascii=False, indent=2)};\n"
    )


def main() -> None:
    """Write the modules."""
    for path, contents in modules().items():
        path.write_text(contents, "utf-8")


if __name__ == "__main__":
    main()
