# SPDX-License-Identifier: Apache-2.0
"""Client library for a respondent's device: verify a survey, randomise, seal, send one report."""

from frankly_protocol import __version__
from frankly_protocol.audit import Charge, ReportLevel
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import (
    ClockError,
    DocumentRejected,
    Equivocation,
    FranklyError,
    InvalidInput,
    KeyChainError,
    LogError,
    RandomnessError,
    RollbackDetected,
    UnsupportedDocument,
)
from frankly_protocol.explanation.budget import Budget
from frankly_protocol.explanation.explain import Explanation
from frankly_protocol.problems import Problem
from frankly_protocol.questions import Anchor, AskIf, Box, Choice, Question, Wanted

from frankly_sdk.answer import Answer
from frankly_sdk.batch import Randomised
from frankly_sdk.client import Client, Survey
from frankly_sdk.errors import (
    AlreadyAnswered,
    BudgetExceeded,
    Disabled,
    InsecureTransport,
    LinkError,
    NetworkError,
    PolicyRefused,
    StoreError,
    SurveyClosed,
    UnknownChoice,
)
from frankly_sdk.events import Event
from frankly_sdk.evidence import Evidence, evidence
from frankly_sdk.plan import Plan
from frankly_sdk.policy import Policy
from frankly_sdk.receipt import Receipt
from frankly_sdk.shared_store import SharedStoreWarning

__all__ = [
    "AlreadyAnswered",
    "Anchor",
    "Answer",
    "AskIf",
    "Block",
    "Box",
    "Budget",
    "BudgetExceeded",
    "Charge",
    "Choice",
    "Client",
    "ClockError",
    "Disabled",
    "DocumentRejected",
    "Equivocation",
    "Event",
    "Evidence",
    "Explanation",
    "FranklyError",
    "InsecureTransport",
    "InvalidInput",
    "KeyChainError",
    "LinkError",
    "LogError",
    "NetworkError",
    "Plan",
    "Policy",
    "PolicyRefused",
    "Problem",
    "Question",
    "Randomised",
    "RandomnessError",
    "Receipt",
    "ReportLevel",
    "RollbackDetected",
    "SharedStoreWarning",
    "StoreError",
    "Survey",
    "SurveyClosed",
    "SurveyDocument",
    "UnknownChoice",
    "UnsupportedDocument",
    "Wanted",
    "__version__",
    "evidence",
]
