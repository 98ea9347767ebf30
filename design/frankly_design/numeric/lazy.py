# SPDX-License-Identifier: Apache-2.0
"""Lazy imports of heavy libraries, so that commands that do not need them start quickly."""

from importlib import import_module
from typing import TYPE_CHECKING, Any


class LazyModule:
    """A module that is imported when an attribute is first read. Thread-safe, like `import`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        # Cached, so that later reads skip __getattr__: some functions are called millions of times.
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import highspy
    from scipy import linalg, optimize, sparse, special
else:
    highspy = LazyModule("highspy")
    linalg = LazyModule("scipy.linalg")
    optimize = LazyModule("scipy.optimize")
    sparse = LazyModule("scipy.sparse")
    special = LazyModule("scipy.special")

__all__ = ["LazyModule", "highspy", "linalg", "optimize", "sparse", "special"]
