"""Names of inputs and vocabularies, made from the names of features."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.features import identifiers

pytestmark = pytest.mark.unit

# Names that only their special characters or their case tell apart.
NAMES = st.text(st.sampled_from("aAbß年龄é/_ 1"), max_size=3) | st.text(max_size=3)


@given(st.sets(NAMES, max_size=8), st.randoms())
def test_no_two_names_become_one(names, random):
    # As hostile as can be: names that look like what others become.
    names |= {f"{name}_{sha256(name.encode()).hexdigest()[:12]}" for name in names}
    names |= {*identifiers(names).values()}

    found = identifiers(names)

    assert len({value.lower() for value in found.values()}) == len(names)
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", x) for x in found.values())
    assert found == identifiers(random.sample(sorted(names), len(names)))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["fare", "image/height", "self"], ["fare", "image_height", "feature_self"]),
        (["class", "name"], ["feature_class", "name"]),
        (["2nd", "_x", "年龄"], ["feature_2nd", "feature__x", "feature___"]),
        (["Fare", "fare", "b"], ["Fare_ce043ad1f51b", "fare_eaa8b6e89fcb", "b"]),
        (["a b", "a_b"], ["a_b_c8687a08aa5d", "a_b_648fa9b31bc7"]),
    ],
)
def test_only_names_that_collide_get_a_digest_of_their_own(names, expected):
    assert [*identifiers(names).values()] == expected
