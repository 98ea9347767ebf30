# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the value of a form, over all mechanisms of its level (docs/maths/forms.md)."""

from math import sqrt

from frankly_server.design.form.request import FormRequest


def lower_bound(request: FormRequest, ratio: float) -> float:
    """Return a value that no mechanism of this level is below.

    Only shares under even priors count towards it, by Parseval's identity: Σ importance · variance
    ≥ (Σ √(c_i k_i))² · 4E/(E−1)², c_i = importance · ((k_i−1)/k_i)².
    """
    roots = 0.0
    for question in request.questions:
        if question.wanted == "shares" and len(set(question.prior)) == 1:
            k = question.choices
            roots += sqrt(float(question.importance) * ((k - 1) / k) ** 2 * k)
    return roots**2 * 4 * ratio / (ratio - 1) ** 2
