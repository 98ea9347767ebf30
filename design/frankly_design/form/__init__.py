# SPDX-License-Identifier: Apache-2.0
"""Forms: many questions under one level (docs/maths/forms.md)."""

from frankly_design.form.engine import FormDesign, design_form
from frankly_design.form.request import FormQuestion, FormRequest

__all__ = ["FormDesign", "FormQuestion", "FormRequest", "design_form"]
