# SPDX-License-Identifier: Apache-2.0
"""A mutant: one small change of one source file, with a name that does not depend on line numbers."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Mutant:
    """Replacement of `source[start:end]` (bytes of the file) by `after`.

    path : the file, from the top of the repository. function : qualified name of the enclosing
    function, empty at module level. operator : kind of the change. line : the source line on which
    the change begins, without indentation. nth : position among mutants that are otherwise equal.
    """

    path: str
    function: str
    operator: str
    line: str
    before: str
    after: str
    start: int
    end: int
    nth: int = 0

    @property
    def change(self) -> str:
        """The change on one line, as written in survivors.toml."""
        words = f"{' '.join(self.before.split())} -> {self.after}"
        return words if self.nth == 0 else f"{words} (no. {self.nth + 1})"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Name of the mutant: file, function, line text and change."""
        return (self.path, self.function, self.line, self.change)

    @property
    def id(self) -> str:
        """Short hash of the key."""
        return sha256("\0".join(self.key).encode()).hexdigest()[:12]

    def apply(self, source: bytes) -> bytes:
        """Return the mutated file."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def numbered(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    """Number mutants with the same key in the order of the file."""
    seen: Counter[tuple[str, str, str, str]] = Counter()
    for mutant in sorted(mutants, key=lambda one: (one.start, one.end, one.after)):
        yield replace(mutant, nth=seen[mutant.key])
        seen[mutant.key] += 1


def ordered(mutants: Iterable[Mutant], seed: int) -> list[Mutant]:
    """Return mutants in the random order of a seed.

    Kinds of change alternate, because otherwise most mutants would be changed constants. The hash
    makes the order of two mutants independent of the others, so a change elsewhere in the file
    hardly changes the sample.
    """

    def draw(mutant: Mutant) -> str:
        return sha256(f"{seed} {mutant.id}".encode()).hexdigest()

    turns: Counter[str] = Counter()
    ranked = []
    for mutant in sorted(mutants, key=draw):
        ranked.append((turns[mutant.operator], draw(mutant), mutant))
        turns[mutant.operator] += 1
    ranked.sort(key=lambda entry: entry[:2])
    return [mutant for _, _, mutant in ranked]
