# SPDX-License-Identifier: Apache-2.0
"""A random set of the answers of one part of a form."""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations
from math import comb
from typing import Final

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.mechanisms.base import MAX_REPORTS, invalid, mask_json, require_whole

_MAX_CELLS: Final = 1 << 18  # sets × answers of a listed cover; its check reads all of them


@dataclass(frozen=True)
class Cover:
    """A random set of a part's answers that contains each of them with the same chance.

    answers : number of the part's answers, 2 to 256. size : if all sets of one size are equally
    likely, that size; None if `listed` gives the sets. listed : (bit mask, whole weight of at least
    1) of each set.

    Raises InvalidInput(weights_invalid), naming `cover`, unless there are 2 to 4096 different sets,
    none of them empty or full, that cover every answer equally often; also if the list is too large
    or its weights sum to 2^53 or more.
    """

    answers: int
    size: int | None = None
    listed: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.size is not None:
            require_whole(self.size, 1, self.answers - 1, "cover")
            if comb(self.answers, self.size) > MAX_REPORTS:
                raise invalid(f"a cover has at most {MAX_REPORTS} sets", "cover")
            return
        full = (1 << self.answers) - 1
        if not 2 <= len(self.listed) <= MAX_REPORTS or len(self.listed) * self.answers > _MAX_CELLS:
            raise invalid(
                f"a cover lists 2 to {MAX_REPORTS} sets, at most {_MAX_CELLS // self.answers} here",
                "cover",
            )
        if len({mask for mask, _ in self.listed}) < len(self.listed):
            raise invalid("the sets of a cover must differ", "cover")
        if not all(0 < mask < full for mask, _ in self.listed):
            raise invalid("a set of a cover contains some answers but not all", "cover")
        if sum(weight for _, weight in self.listed) > MAX_INT:
            raise invalid("the weights of a cover must sum to less than 2^53", "cover")
        # With unequal coverage the normalisation would depend on the truth, and the level would be
        # exceeded.
        if len(set(self._coverage)) > 1:
            raise invalid("every answer must be covered equally often", "cover")

    @property
    def sets(self) -> int:
        """The number of sets."""
        return len(self.listed) if self.size is None else comb(self.answers, self.size)

    @property
    def _coverage(self) -> list[int]:
        return [
            sum(weight for mask, weight in self.listed if mask >> x & 1)
            for x in range(self.answers)
        ]

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """The sets as bit masks; a set's number is its index here.

        All sets of one size are in the lexicographic order of their positions.
        """
        if self.size is None:
            return tuple(mask for mask, _ in self.listed)
        return tuple(
            sum(1 << x for x in chosen) for chosen in combinations(range(self.answers), self.size)
        )

    @property
    def weights(self) -> tuple[int, ...]:
        """The weight of each set, in the order of `masks`."""
        return tuple(w for _, w in self.listed) if self.size is None else (1,) * self.sets

    @cached_property
    def inside(self) -> int:
        """Total weight of the sets that contain a given answer; the same for every answer."""
        return self._coverage[0] if self.size is None else comb(self.answers - 1, self.size - 1)

    @cached_property
    def outside(self) -> int:
        """Total weight of the sets that do not contain a given answer."""
        return (sum(self.weights) if self.size is None else self.sets) - self.inside

    @cached_property
    def rows(self) -> tuple[tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], ...]:
        """For each answer, (cumulative weights, numbers) of the sets without it, then of those with it.

        All rows are computed together, because a cache with single rows would reveal for which
        answers a set was drawn.
        """
        weights, numbers = self.weights, range(self.sets)
        return tuple(
            tuple(
                (tuple(accumulate(weights[i] for i in chosen)), tuple(chosen))
                for chosen in (
                    [i for i in numbers if self.masks[i] >> x & 1 == held] for held in (0, 1)
                )
            )
            for x in range(self.answers)
        )

    def number(self, answer: int, rank: int, *, holds: bool) -> int:
        """Return the number of the set at cumulative weight `rank`.

        Only the sets that contain `answer` count if `holds`, otherwise only the others.
        """
        cumulative, numbers = self.rows[answer][holds]
        return numbers[bisect_right(cumulative, rank)]

    def to_json(self) -> int | list[list[str | int]]:
        """Return the cover in its JSON form: its size, or a list of [hex digits, weight]."""
        if self.size is not None:
            return self.size
        return [[mask_json(mask, self.answers), weight] for mask, weight in self.listed]


def gain(cover: Cover, choices: int, after: int) -> Fraction:
    """Return the advantage of a set's best choice of a question over an average choice.

    after : the number of joint answers to the questions after it in the part.
    """
    total, best = cover.inside + cover.outside, 0
    if choices == cover.answers:
        best = total  # the part is one question: no set is empty
    else:
        first = sum(1 << x for x in range(cover.answers) if x // after % choices == 0)
        chosen = [first << after * choice for choice in range(choices)]
        # The best guess after a set is the choice with the most joint answers in it.
        for mask, weight in zip(cover.masks, cover.weights, strict=True):
            best += weight * max((mask & own).bit_count() for own in chosen)
    # The mean share of the best choice's joint answers in the set, minus the same share for an
    # average choice.
    return (
        Fraction(best, total * (cover.answers // choices)) - Fraction(cover.inside, total)
    ) / choices
