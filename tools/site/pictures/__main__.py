# SPDX-License-Identifier: Apache-2.0
"""Write every picture to docs/pictures."""

from pathlib import Path

from tools.site.pictures import PICTURES

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "pictures"

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
