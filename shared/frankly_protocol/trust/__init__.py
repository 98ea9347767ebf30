# SPDX-License-Identifier: Apache-2.0
"""Who may sign what, and what the transparency log proves; no input or output of its own."""

from frankly_protocol.trust.chain import Proven, prove_chain, read_chain, walk, write_chain
from frankly_protocol.trust.keys import KeysDocument, LogRole, NamedKey, Role, accept_keys, require_step
from frankly_protocol.trust.merkle import Tree, document_leaf, require_consistency, require_inclusion
from frankly_protocol.trust.notes import Checkpoint, SignedCheckpoint, cosign, sign_checkpoint
from frankly_protocol.trust.proof import LogProof, require_watched

__all__ = [
    "Checkpoint",
    "KeysDocument",
    "LogProof",
    "LogRole",
    "NamedKey",
    "Proven",
    "Role",
    "SignedCheckpoint",
    "Tree",
    "accept_keys",
    "cosign",
    "document_leaf",
    "prove_chain",
    "read_chain",
    "require_consistency",
    "require_inclusion",
    "require_step",
    "require_watched",
    "sign_checkpoint",
    "walk",
    "write_chain",
]
