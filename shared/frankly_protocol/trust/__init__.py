# SPDX-License-Identifier: Apache-2.0
"""Trust: signing keys and their chain, and proofs of the transparency log; no input or output."""

from frankly_protocol.trust.chain import KnownKeys, Proven, prove_chain, read_chain, write_chain
from frankly_protocol.trust.keys import (
    KeysDocument,
    LogRole,
    NamedKey,
    Role,
    SignedKeys,
    accept_keys,
)
from frankly_protocol.trust.merkle import (
    Tree,
    document_leaf,
    require_consistency,
    require_inclusion,
)
from frankly_protocol.trust.notes import Checkpoint, SignedCheckpoint, cosign, sign_checkpoint
from frankly_protocol.trust.proof import LogProof, require_watched

__all__ = [
    "Checkpoint",
    "KeysDocument",
    "KnownKeys",
    "LogProof",
    "LogRole",
    "NamedKey",
    "Proven",
    "Role",
    "SignedCheckpoint",
    "SignedKeys",
    "Tree",
    "accept_keys",
    "cosign",
    "document_leaf",
    "prove_chain",
    "read_chain",
    "require_consistency",
    "require_inclusion",
    "require_watched",
    "sign_checkpoint",
    "write_chain",
]
