# SPDX-License-Identifier: Apache-2.0
"""Build hook: the distributions carry the migrations and the browser SDK, which live elsewhere in the repository."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MigrationsHook(BuildHookInterface[Any]):
    """Adds both folders to wheel and sdist; an editable install reads them from the checkout instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Find each folder beside this project (in a checkout) or inside it (in an unpacked sdist)."""
        if version == "editable":
            return
        root = Path(self.root)
        for name, place in (("migrations", "migrations"), ("browser", "client_sdk/browser/src")):
            source = next(path for path in (root.parent / place, root / name) if path.is_dir())
            target = f"frankly_server/{name}" if self.target_name == "wheel" else name
            build_data["force_include"][str(source)] = target
