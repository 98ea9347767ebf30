# SPDX-License-Identifier: Apache-2.0
"""What a verified document means for a respondent, in words: devices say it, and admins read it before publishing."""
