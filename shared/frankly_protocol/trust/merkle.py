# SPDX-License-Identifier: Apache-2.0
"""RFC 6962 hash trees: hashing, proving and verifying, without IO (docs/protocol.md §9).

A leaf is SHA-256(0x00 ‖ entry), a node SHA-256(0x01 ‖ left ‖ right), the empty tree's root SHA-256
of the empty string. The left subtree of n > 1 leaves has k leaves, the largest power of two below
n.
"""

import hashlib
from collections.abc import Sequence

from frankly_protocol.errors import LogError

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()
MAX_SIZE = 2**53 - 1
MAX_PROOF = 64  # at most 54 hashes are needed: one for each bit of the size, and one more


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of a leaf."""
    # Different prefixes keep an inner node from passing for a leaf (RFC 6962 §2.1).
    return hashlib.sha256(b"\x00" + entry).digest()


def document_leaf(digest: str) -> bytes:
    """Return the leaf hash of a document; its entry is the 32 raw bytes of the digest."""
    return leaf_hash(bytes.fromhex(digest.removeprefix("sha256:")))


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """An append-only tree over leaf hashes.

    Hashes of complete subtrees are computed once and cached. Roots and proofs are those of RFC 6962
    §2.1. Appending is not safe while another thread reads.
    """

    def __init__(self, leaves: Sequence[bytes] = ()) -> None:
        self._levels: list[list[bytes]] = [[]]
        for leaf in leaves:
            self.append(leaf)

    @property
    def size(self) -> int:
        """The number of leaves."""
        return len(self._levels[0])

    def leaves(self, size: int) -> list[bytes]:
        """Return the first `size` leaf hashes."""
        return self._levels[0][:size]

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash at the end, and the hash of every subtree that it completes."""
        level, node = 0, leaf
        while True:
            if level == len(self._levels):
                self._levels.append([])
            row = self._levels[level]
            row.append(node)
            # The node has no right sibling yet, so its parent is not complete.
            if len(row) % 2:
                return
            node = node_hash(row[-2], row[-1])
            level += 1

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the first `size` leaves (default: all).

        Raises LogError if the tree has fewer.
        """
        size = self._require_size(self.size if size is None else size)
        return self._span(0, size) if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Return the path from leaf `index` to the root of `size` leaves, its sibling first.

        Raises LogError if there is no such leaf.
        """
        if not 0 <= index < self._require_size(size):
            raise LogError("the tree of this size has no such leaf", "index")
        path, start, end = [], 0, size
        while end - start > 1:
            middle = start + _split(end - start)
            if index < middle:
                path.append(self._span(middle, end))
                end = middle
            else:
                path.append(self._span(start, middle))
                start = middle
        return path[::-1]

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Return the proof that the first `old` leaves are a prefix of the first `new`.

        The proof is empty if `old` is 0 or equal to `new`. Raises LogError unless
        0 ≤ old ≤ new ≤ the size of the tree.
        """
        if not 0 <= old <= self._require_size(new):
            raise LogError("a tree only grows: the old size lies between 0 and the new one", "old")
        if old in (0, new):
            return []
        proof, start, end, is_at_left_edge = [], 0, new, True
        while old != end:
            middle = start + _split(end - start)
            if old <= middle:
                proof.append(self._span(middle, end))
                end = middle
            else:
                proof.append(self._span(start, middle))
                start, is_at_left_edge = middle, False
        return ([] if is_at_left_edge else [self._span(start, end)]) + proof[::-1]

    def _require_size(self, size: int) -> int:
        if not 0 <= size <= self.size:
            raise LogError(f"the tree has {self.size} leaves", "size")
        return size

    def _span(self, start: int, end: int) -> bytes:
        """Return the root over leaves start … end−1.

        `start` is a multiple of a power of two ≥ the width.
        """
        width = end - start
        if width & (width - 1) == 0:
            # A complete subtree: `append` has stored its root.
            level = width.bit_length() - 1
            return self._levels[level][start >> level]
        middle = start + _split(width)
        return node_hash(self._span(start, middle), self._span(middle, end))


def require_inclusion(
    leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> None:
    """Raise LogError unless `path` leads from `leaf` at `index` to the `root` of `size` leaves.

    The walk reads the bits of the index: at each level the sibling is on the left if the node is a
    right child or the last of its row. Source: RFC 6962 §2.1.1; the loop is that of RFC 9162
    §2.1.3.2.
    """
    if not 0 <= index < size <= MAX_SIZE:
        raise LogError("the index lies beyond the tree", "index")
    node, last, computed = index, size - 1, leaf
    for sibling in _hashes(path):
        if last == 0:
            raise LogError("the path is too long for the tree", "proof")
        if node & 1 or node == last:
            computed = node_hash(sibling, computed)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            computed = node_hash(computed, sibling)
        node, last = node >> 1, last >> 1
    if last != 0:
        raise LogError("the path is too short for the tree", "proof")
    if computed != root:
        raise LogError(
            "the path does not lead to the checkpoint's root: the document is not in this log",
            "proof",
        )


def require_consistency(
    old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Raise LogError unless `proof` shows that the tree of size `new` extends that of size `old`.

    Every tree extends the empty tree; two trees of the same size must be equal. Source: RFC 6962
    §2.1.2; the loop is that of RFC 9162 §2.1.4.2.
    """
    if not 0 <= old <= new <= MAX_SIZE:
        raise LogError("a log only grows: the old size lies between 0 and the new one", "size")
    if old in (0, new):
        if proof:
            raise LogError("no proof is needed here, and none may be given", "proof")
        if (old == new and old_root != new_root) or (old == 0 and old_root != EMPTY_ROOT):
            raise LogError("two trees of one size have different roots: the log has forked", "root")
        return
    path = _hashes(proof)
    # RFC 9162 omits the old root from the path if it is a complete subtree of the new tree.
    if old & (old - 1) == 0:
        path = [old_root, *path]
    if not path:
        raise LogError("the proof is too short", "proof")
    if _roots(old, new, path) != (old_root, new_root):
        raise LogError(
            "the old tree is not the beginning of the new one: the log has forked", "proof"
        )


def _roots(old: int, new: int, path: list[bytes]) -> tuple[bytes, bytes]:
    """Return the roots of the old and the new tree that a consistency proof leads to."""
    node, last = old - 1, new - 1
    # The levels below the old tree's last complete subtree need no hashes (RFC 9162 §2.1.4.2).
    while node & 1:
        node, last = node >> 1, last >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise LogError("the proof is too long", "proof")
        if node & 1 or node == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            second = node_hash(second, sibling)
        node, last = node >> 1, last >> 1
    if last != 0:
        raise LogError("the proof is too short", "proof")
    return first, second


def _hashes(path: Sequence[bytes]) -> list[bytes]:
    # The proof comes from an untrusted server: its length is bounded before any hashing.
    if len(path) > MAX_PROOF or any(len(entry) != HASH_BYTES for entry in path):
        raise LogError(f"a proof has at most {MAX_PROOF} hashes of {HASH_BYTES} bytes", "proof")
    return list(path)


def _split(width: int) -> int:
    """Return the largest power of two below `width`, which is at least 2."""
    return 1 << ((width - 1).bit_length() - 1)
