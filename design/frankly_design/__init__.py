# SPDX-License-Identifier: Apache-2.0
"""The mathematics of Frankly: designs, measures, exact rounding, estimates; no server, no clock.

An optimal mechanism in three lines::

    import frankly_design as fd

    design = fd.design([[40, 110, 210, 140], [90, 80, 60, 20]], fd.LIP("0.25"))
    print(design.explain())

`compare` puts families side by side, `frontier` shows information against variance, `measure`
measures any channel by every notion, and a design samples reports and estimates shares from them.

Every privacy notion except dp is a cone (`notions.cones`), whose extreme rays (`numeric.rays`) are
the columns of optimal mechanisms. A linear or convex programme over these columns (`optimum`) finds
an optimum, and `tables.quantise` rounds it to integers that the exact verifier accepts.
`engine.design` runs all steps; `estimate` makes unbiased shares of the reports' counts.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from frankly_protocol import __version__
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism

if TYPE_CHECKING:
    from frankly_design.interface.design import Design
    from frankly_design.interface.designing import MECHANISMS, compare, design, frontier
    from frankly_design.interface.estimates import Estimates, estimate_shares
    from frankly_design.interface.forms import Form, Question, design_form
    from frankly_design.interface.measured import Measures, measure
    from frankly_design.interface.notions import (
        ALIP,
        DP,
        DPV,
        LDP,
        LIP,
        PMC,
        PML,
        RLDP,
        SRLIP,
        MetricLDP,
        Notion,
        SecretLDP,
    )
    from frankly_design.interface.shown import Listing

# Matrices are small, and processes share the cores: on a busy machine, waiting BLAS threads made a
# design 50 times slower. The variable has an effect only if it is set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_PLACES = {
    **dict.fromkeys(
        "ALIP DP DPV LDP LIP PMC PML RLDP SRLIP MetricLDP Notion SecretLDP".split(), "notions"
    ),
    **dict.fromkeys(("MECHANISMS", "compare", "design", "frontier"), "designing"),
    **dict.fromkeys(("Estimates", "estimate_shares"), "estimates"),
    **dict.fromkeys(("Form", "Question", "design_form"), "forms"),
    **dict.fromkeys(("Measures", "measure"), "measured"),
    "Design": "design",
    "Listing": "shown",
}
"""Name → its module in `interface`, which is imported when the name is first used."""

__all__ = [
    "ALIP",
    "DP",
    "DPV",
    "LDP",
    "LIP",
    "MECHANISMS",
    "PMC",
    "PML",
    "RLDP",
    "SRLIP",
    "DenseMechanism",
    "Design",
    "DocumentRejected",
    "Estimates",
    "Form",
    "InvalidInput",
    "Listing",
    "Measures",
    "MetricLDP",
    "Notion",
    "Question",
    "SecretLDP",
    "__version__",
    "compare",
    "design",
    "design_form",
    "estimate_shares",
    "frontier",
    "measure",
]


def __getattr__(name: str) -> Any:
    # Programs that use one module below do not wait for the solvers.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.interface.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
