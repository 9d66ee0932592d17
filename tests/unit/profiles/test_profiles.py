"""The settings files that ship."""

from __future__ import annotations

import pytest

from bigcrawl.config import BY_NAME, read_config
from bigcrawl.profiles import gentle, intranet


@pytest.mark.parametrize("profile", [gentle, intranet])
def test_every_value_is_a_setting_that_goes_with_the_others(profile: object) -> None:
    """Its names are known, and the node starts with them."""
    values = {name: value for name, value in vars(profile).items() if name.isupper()}
    assert len(values) > 5
    assert values.keys() <= BY_NAME.keys()
    read_config(values)


def test_gentle_is_as_gentle_as_polybot() -> None:
    """Thirty seconds between pages of a host, whatever the budget of its domain is."""
    politeness = read_config(vars(gentle)).politeness
    assert (politeness.host_delay_ms, politeness.host_delay_min_ms, politeness.download_factor) == (30_000, 30_000, 10)
