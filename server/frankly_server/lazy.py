# SPDX-License-Identifier: Apache-2.0
"""Heavy libraries, imported on first use, so that commands that need none of them start quickly."""

from importlib import import_module
from typing import TYPE_CHECKING, Any


class LazyModule:
    """A module that is imported when an attribute is first read. Thread-safe, as `import` is."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        # Later reads skip __getattr__, because some functions are called millions of times.
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import highspy
    from scipy import linalg, optimize, sparse, special, stats
else:
    highspy = LazyModule("highspy")
    linalg = LazyModule("scipy.linalg")
    optimize = LazyModule("scipy.optimize")
    sparse = LazyModule("scipy.sparse")
    special = LazyModule("scipy.special")
    stats = LazyModule("scipy.stats")

__all__ = ["LazyModule", "highspy", "linalg", "optimize", "sparse", "special", "stats"]
