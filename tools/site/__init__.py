# SPDX-License-Identifier: Apache-2.0
"""The documentation site: pictures, screenshots, generated pages."""
