# SPDX-License-Identifier: Apache-2.0
"""Frankly on a respondent's device: verify what is asked, randomise exactly, seal, then send one noisy report."""

from frankly_protocol import __version__
from frankly_protocol.errors import (
    ClockError,
    DocumentRejected,
    Equivocation,
    FranklyError,
    KeyChainError,
    RandomnessError,
    RollbackDetected,
    UnsupportedDocument,
)

from frankly_sdk.client import Client, Survey
from frankly_sdk.errors import (
    AlreadyAnswered,
    BudgetExceeded,
    InsecureTransport,
    LinkError,
    NetworkError,
    PolicyRefused,
    StoreError,
    SurveyClosed,
    UnknownChoice,
)
from frankly_sdk.explain import Explanation
from frankly_sdk.policy import Policy
from frankly_sdk.receipt import Receipt

__all__ = [
    "AlreadyAnswered",
    "BudgetExceeded",
    "Client",
    "ClockError",
    "DocumentRejected",
    "Equivocation",
    "Explanation",
    "FranklyError",
    "InsecureTransport",
    "KeyChainError",
    "LinkError",
    "NetworkError",
    "Policy",
    "PolicyRefused",
    "RandomnessError",
    "Receipt",
    "RollbackDetected",
    "StoreError",
    "Survey",
    "SurveyClosed",
    "UnknownChoice",
    "UnsupportedDocument",
    "__version__",
]
