# SPDX-License-Identifier: Apache-2.0
"""Build hook that adds the migrations and the browser SDK to the distributions."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDERS = (
    ("migrations", "migrations"),
    ("browser", "client_sdk/browser/src"),
    ("page", "client_sdk/browser/page"),
)


class MigrationsHook(BuildHookInterface[Any]):
    """Hook that adds the folders to wheel and sdist; editable installs use the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add each folder, from next to this project (checkout) or inside it (unpacked sdist)."""
        if version == "editable":
            return
        root = Path(self.root)
        for name, place in _FOLDERS:
            source = next(path for path in (root.parent / place, root / name) if path.is_dir())
            target = f"frankly_server/{name}" if self.target_name == "wheel" else name
            build_data["force_include"][str(source)] = target
