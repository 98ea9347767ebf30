# SPDX-License-Identifier: Apache-2.0
"""Texts of the browser SDK, written from the files that the Python SDK reads.

`python -m tools.languages` writes client_sdk/browser/src/words.LANGUAGE.js and words_hosted.js.
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ROOT / "shared" / "frankly_protocol" / "explanation" / "texts"
SOURCES = ROOT / "client_sdk" / "browser" / "src"


def modules() -> dict[Path, str]:
    """Return the path and the contents of the module of each language."""
    texts = {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted(TEXTS.glob("*.json"))
    }
    # Every page loads the English texts, so a text that only the hosted page shows is not among them.
    offline = texts["en"]["element"].pop("offline")
    return {SOURCES / f"words.{language}.js": _module(own) for language, own in texts.items()} | {
        SOURCES / "words_hosted.js": _header("English text of the hosted page alone")
        + f"export const OFFLINE = {json.dumps(offline)};\n"
    }


def _header(name: str) -> str:
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        f"/** {name}; written by `python -m tools.languages` from shared/frankly_protocol/explanation/texts/. */\n\n"
    )


def _module(texts: dict[str, Any]) -> str:
    strings = texts.pop("element")
    name = texts.pop("language")
    texts.pop("page")  # only servers make these pages
    return _header(name) + (
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
