# SPDX-License-Identifier: Apache-2.0
"""Merkle roots and proofs, compared with RFC 6962's recursive definitions, and mutated proofs."""

import hashlib
from collections.abc import Callable
from functools import cache

import pytest
from frankly_protocol.errors import LogError
from frankly_protocol.trust import Tree, require_consistency, require_inclusion
from frankly_protocol.trust.merkle import EMPTY_ROOT, leaf_hash

from tests.refusals import refusal

ENTRIES = tuple(bytes([i % 256, i // 256]) * (i % 5) for i in range(201))
Entries = tuple[bytes, ...]


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@cache
def mth(entries: Entries) -> bytes:
    """Return MTH of RFC 6962 §2.1."""
    if len(entries) < 2:
        return sha(b"\x00" + entries[0]) if entries else sha(b"")
    k = split(len(entries))
    return sha(b"\x01" + mth(entries[:k]) + mth(entries[k:]))


def split(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def path(m: int, entries: Entries) -> list[bytes]:
    """Return PATH of RFC 6962 §2.1.1."""
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if m < k:
        return [*path(m, entries[:k]), mth(entries[k:])]
    return [*path(m - k, entries[k:]), mth(entries[:k])]


def subproof(m: int, entries: Entries, is_complete: bool) -> list[bytes]:
    """Return SUBPROOF of RFC 6962 §2.1.2."""
    n = len(entries)
    if m == n:
        return [] if is_complete else [mth(entries)]
    k = split(n)
    if m <= k:
        return [*subproof(m, entries[:k], is_complete), mth(entries[k:])]
    return [*subproof(m - k, entries[k:], False), mth(entries[:k])]


@pytest.fixture(scope="module")
def largest(full: bool) -> int:
    return len(ENTRIES) if full else 64


@pytest.fixture(scope="module")
def tree(largest: int) -> Tree:
    return Tree([leaf_hash(entry) for entry in ENTRIES[:largest]])


@pytest.fixture(scope="module")
def roots(largest: int) -> list[bytes]:
    return [mth(ENTRIES[:n]) for n in range(largest + 1)]


def test_every_root_is_the_definitions(tree: Tree, roots: list[bytes]) -> None:
    assert [tree.root(n) for n in range(tree.size + 1)] == roots
    assert tree.root() == roots[-1]


def test_every_inclusion_proof_is_the_definitions_and_verifies(
    tree: Tree, roots: list[bytes]
) -> None:
    for n in range(1, tree.size + 1):
        for m in range(n):
            proof = tree.inclusion(m, n)
            assert proof == path(m, ENTRIES[:n])
            require_inclusion(leaf_hash(ENTRIES[m]), m, n, proof, roots[n])


def test_every_consistency_proof_is_the_definitions_and_verifies(
    tree: Tree, roots: list[bytes]
) -> None:
    for n in range(1, tree.size + 1):
        for m in range(n + 1):
            proof = tree.consistency(m, n)
            if m > 0:
                assert proof == subproof(m, ENTRIES[:n], True)
            require_consistency(m, roots[m], n, roots[n], proof)


def refused(check: Callable[[], None]) -> bool:
    try:
        check()
    except LogError:
        return True
    return False


def mutations(proof: list[bytes]) -> list[list[bytes]]:
    """Return proofs with one bit changed, one hash added, removed or repeated, or two hashes exchanged."""
    mutated = []
    for i, entry in enumerate(proof):
        mutated.append([*proof[:i], bytes([entry[0] ^ 1]) + entry[1:], *proof[i + 1 :]])
        mutated.append(proof[:i] + proof[i + 1 :])
        mutated.append([*proof[: i + 1], entry, *proof[i + 1 :]])
    mutated += [[*proof, b"\x00" * 32], [b"\x00" * 32, *proof], [*proof, b""]]
    mutated += [[proof[1], proof[0], *proof[2:]]] if len(proof) > 1 else []
    return mutated


def test_no_mutated_inclusion_proof_is_accepted(roots: list[bytes], tree: Tree, full: bool) -> None:
    tried = accepted = 0
    for n in range(1, tree.size if full else 34):
        for m in range(n):
            leaf, proof = leaf_hash(ENTRIES[m]), tree.inclusion(m, n)
            altered = [(leaf, m, n, p, roots[n]) for p in mutations(proof)]
            altered += [
                (leaf, wrong, n, proof, roots[n]) for wrong in range(-1, n + 2) if wrong != m
            ]
            altered += [
                (leaf, m, n, proof, roots[wrong])
                for wrong in (n - 1, n + 1)
                if roots[wrong] != roots[n]
            ]
            altered += [
                (leaf_hash(b"another"), m, n, proof, roots[n]),
                (leaf[::-1], m, n, proof, roots[n]),
            ]
            tried += len(altered)
            accepted += sum(
                not refused(lambda case=case: require_inclusion(*case)) for case in altered
            )
    assert (accepted, tried > 10_000) == (0, True)


def test_no_mutated_consistency_proof_is_accepted(
    roots: list[bytes], tree: Tree, full: bool
) -> None:
    tried = accepted = 0
    for n in range(1, tree.size if full else 34):
        for m in range(1, n + 1):
            proof = tree.consistency(m, n)
            altered = [(m, roots[m], n, roots[n], p) for p in mutations(proof)]
            altered += [(m, sha(b"x"), n, roots[n], proof), (m, roots[m], n, sha(b"x"), proof)]
            altered += [(n, roots[n], m, roots[m], proof)] if m < n else []
            altered += [
                (m, roots[m - 1], n, roots[n], proof),
                (m, roots[m], n, roots[n - 1], proof),
            ]
            tried += len(altered)
            accepted += sum(
                not refused(lambda case=case: require_consistency(*case)) for case in altered
            )
    assert (accepted, tried > 5_000) == (0, True)


def test_a_wrong_size_is_accepted_only_if_its_path_is_as_long(
    roots: list[bytes], tree: Tree
) -> None:
    """A path determines only its own length, not the size of the tree, which the checkpoint signs."""
    for n in range(2, 34):
        for m in range(n):
            for wrong_size in {n - 1, n + 1}:
                proof = tree.inclusion(m, n)
                if not refused(
                    lambda size=wrong_size, path=proof: require_inclusion(
                        leaf_hash(ENTRIES[m]),  # noqa: B023
                        m,  # noqa: B023
                        size,
                        path,
                        roots[n],  # noqa: B023
                    )
                ):  # noqa: B023, RUF100
                    assert len(proof) == len(tree.inclusion(m, wrong_size))


def test_a_forked_history_cannot_be_proven_consistent(roots: list[bytes], tree: Tree) -> None:
    """A log that changed an entry below an old head cannot prove consistency with that head."""
    for n in (2, 3, 7, 8, 20, 33):
        for m in range(1, n):
            forked = Tree([leaf_hash(e) for e in [*ENTRIES[: m - 1], b"forged", *ENTRIES[m:n]]])
            assert refused(
                lambda: require_consistency(
                    m,  # noqa: B023
                    roots[m],  # noqa: B023
                    n,  # noqa: B023
                    forked.root(n),  # noqa: B023
                    forked.consistency(m, n),  # noqa: B023
                )
            )  # noqa: B023, RUF100
            assert refused(
                lambda: require_consistency(m, roots[m], n, forked.root(n), tree.consistency(m, n))  # noqa: B023
            )  # noqa: B023, RUF100


BEYOND: list[Callable[[], object]] = [
    lambda: require_inclusion(b"\0" * 32, 0, 2**53, [], b"\0" * 32),
    lambda: require_inclusion(b"\0" * 32, 0, 2**53 - 1, [b"\0" * 32] * 65, b"\0" * 32),
    lambda: require_consistency(1, b"\0" * 32, 2**60, b"\0" * 32, []),
    lambda: require_consistency(0, b"\0" * 32, 5, b"\0" * 32, []),
    lambda: require_consistency(5, b"\0" * 32, 6, b"\0" * 32, []),
    lambda: Tree([b"\0" * 32]).root(2),
    lambda: Tree().inclusion(0, 0),
    lambda: Tree([b"\0" * 32]).consistency(2, 1),
]


@pytest.mark.parametrize("call", BEYOND, ids=range(len(BEYOND)))
def test_positions_beyond_the_tree_raise_a_typed_error(call: Callable[[], object]) -> None:
    with pytest.raises(LogError):
        call()


def test_the_empty_tree() -> None:
    assert Tree().root() == EMPTY_ROOT == sha(b"")
    require_consistency(0, EMPTY_ROOT, 3, sha(b"anything"), [])


def test_a_tree_has_at_most_2_to_the_53_minus_1_leaves() -> None:
    """The largest size fails only because of its proof; a size one larger is refused by itself."""
    root, largest = b"\0" * 32, 2**53 - 1
    for size, field in ((largest, "proof"), (largest + 1, "index")):
        assert refusal(LogError, require_inclusion, root, 0, size, [], root).field == field
    for size, field in ((largest, "proof"), (largest + 1, "size")):
        assert refusal(LogError, require_consistency, 1, root, size, root, []).field == field


def test_only_leaves_within_the_size_have_a_path() -> None:
    tree = Tree([bytes([i]) * 32 for i in range(5)])
    assert [len(tree.inclusion(i, 3)) for i in range(3)] == [2, 2, 1]
    for index, size in ((3, 3), (-1, 3), (0, 0)):
        assert refusal(LogError, tree.inclusion, index, size).field == "index"
