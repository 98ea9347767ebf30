# SPDX-License-Identifier: Apache-2.0
"""Generated requests, and the check of the responses to them."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.frankly_server.web.site import check_declared

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELDS = ("v", "doc", "id", "y", "strata", "token")
BODIES = st.one_of(
    st.binary(max_size=200),
    JSON_VALUES.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON_VALUES)),
    st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES).map(lambda changes: {"base": changes}),
)


def check(spec: dict[str, Any], path: str, method: str, answer: Any) -> None:
    assert answer.status_code < 500, answer.data
    if answer.status_code == 404 and answer.get_json()["code"] == "not_found":
        return  # the generated id is not one path segment, so the URL is a different one
    check_declared(spec, path, method, answer)
