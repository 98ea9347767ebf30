# SPDX-License-Identifier: Apache-2.0
"""Folder of evidence about a published survey, for data protection officers and ethics boards."""

from frankly_server.evidence.collect import collect
from frankly_server.evidence.folder import FILES, write_folder

__all__ = ["FILES", "collect", "write_folder"]
