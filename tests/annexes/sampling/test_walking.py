"""The choices of random walks: bounded, by chance, and the same each time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.url.key import PUBLIC_KEYS
from bigcrawl_sampling.walking import LINKS_MAX, WALKS_MAX, RandomWalks, links_to_choose_from

SEEDS = ["http://a.example/", "http://b.example/"]
LINKS = [f"http://a.example/{number}" for number in range(10)]


@pytest.mark.parametrize("fields", [{"walks": 0}, {"walks": WALKS_MAX + 1}, {"walks": "x"}, {"restart": 0}])
def test_arguments_are_bounded(fields: dict[str, Any]) -> None:
    """What is no number, or out of bounds, is said with the argument's name."""
    with pytest.raises(ConfigError, match=r"walks .* restart"):
        RandomWalks.parse_options(**{"walks": "10", "restart": "0.5", "seed": 1, **fields})


def test_walks_choose_by_chance_and_repeat_themselves() -> None:
    """Every seed and link is chosen about as often as any other, and a walk ends as often as `restart` says."""
    walking = RandomWalks.parse_options("2000", "0.25", 1)
    starts = Counter(walking.first_url(walk, SEEDS) for walk in range(walking.walks))
    assert min(starts[seed] for seed in SEEDS) > 900
    onward = [walking.next_url(walk, 3, LINKS) for walk in range(walking.walks)]
    assert onward.count(None) == pytest.approx(500, abs=60)
    assert min(Counter(onward)[link] for link in LINKS) > 100
    assert onward == [walking.next_url(walk, 3, LINKS) for walk in range(walking.walks)]
    assert onward != [walking.next_url(walk, 4, LINKS) for walk in range(walking.walks)]
    assert walking.next_url(0, 0, []) is None


def test_choices_are_distinct_and_bounded() -> None:
    """A link counts once however often a page has it; of very many, those with the lowest keys, in any order."""
    assert set(links_to_choose_from([*LINKS, *LINKS])) == set(LINKS)
    many = [f"http://a.example/{number}" for number in range(2 * LINKS_MAX)]
    found = links_to_choose_from(many)
    assert found == links_to_choose_from(many[::-1])
    assert len(found) == LINKS_MAX
    assert max(map(PUBLIC_KEYS.of_url, found)) < min(map(PUBLIC_KEYS.of_url, set(many) - set(found)))
