# SPDX-License-Identifier: Apache-2.0
"""Build hook: a distribution carries what it needs of the checkout inside its package (ADR 0053)."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CarriedFolders(BuildHookInterface[Any]):
    """Hook that adds the folders of `[tool.hatch.build.hooks.custom.carried]` to wheel and sdist.

    Each entry names the folder's place in the package and the folder in the checkout. Imports of a
    carried package of ours are renamed to its place, so that the copy belongs to this distribution.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders, and the modules whose imports change.

        An editable install uses the checkout; an unpacked sdist has everything in its place.
        """
        root, package = Path(self.root).resolve(), self.metadata.name.replace("-", "_")
        carried = {f"{package}/{place}": folder for place, folder in self.config["carried"].items()}
        if version == "editable" or all((root / place).is_dir() for place in carried):
            return
        folders = {place: (root / folder).resolve() for place, folder in carried.items()}
        if missing := [str(folder) for folder in folders.values() if not folder.is_dir()]:
            raise FileNotFoundError(f"{missing[0]}: build from a whole checkout, or from an sdist")
        names = {
            folder.name: place.replace("/", ".")
            for place, folder in folders.items()
            if (folder / "__init__.py").exists()
        }
        imports = re.compile(rf"^( *from )({'|'.join(names)})(?=[\w.]* import )", re.MULTILINE)
        self._renamed = TemporaryDirectory()  # deleted with this hook
        for place, folder in ({package: root / package} | folders).items():
            for source in sorted(folder.rglob("*")):
                if source.is_dir() or "__pycache__" in source.parts:
                    continue
                target = f"{place}/{source.relative_to(folder).as_posix()}"
                text = source.read_text("utf-8") if source.suffix == ".py" else ""
                renamed = imports.sub(lambda line: line[1] + names[line[2]], text)
                if renamed != text:
                    file = Path(self._renamed.name, target)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(renamed, "utf-8", newline="\n")
                    build_data["force_include"][str(file)] = target
                elif place != package:
                    build_data["force_include"][str(source)] = target
