# SPDX-License-Identifier: Apache-2.0
"""The documentation site: theme, hooks, pictures, generated pages."""
