# SPDX-License-Identifier: Apache-2.0
"""Build hook: the server's distributions carry the migrations, which live at the top of the repository."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MigrationsHook(BuildHookInterface[Any]):
    """Adds `migrations/` to wheel and sdist; an editable install reads them from the checkout instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Find the folder beside this project (in a checkout) or inside it (in an unpacked sdist)."""
        if version == "editable":
            return
        root = Path(self.root)
        source = next(path for path in (root.parent / "migrations", root / "migrations") if path.is_dir())
        target = "frankly_server/migrations" if self.target_name == "wheel" else "migrations"
        build_data["force_include"][str(source)] = target
