# SPDX-License-Identifier: Apache-2.0
"""The site of the documentation: theme, hooks, pictures, generated pages."""
