from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from bigcrawl_simweb.basics.power_law import PowerLaw, ScatteredOrder, mix_bits
from bigcrawl_simweb.model.population import Population


@pytest.mark.parametrize(("count", "total", "exponent"), [(1, 1, 0.9), (1, 7, 0.5), (7, 7, 0.7), (900, 50_000, 0.9)])
def test_shares_are_exact_falling_and_found_again(count: int, total: int, exponent: float):
    """All shares together are the total, none is empty, and a position leads back to the share it lies in."""
    law = PowerLaw(count, exponent)
    shares = [law.share(rank, total) for rank in range(count)]
    assert sum(shares) == total
    assert min(shares) >= 1
    # Rounding down may make a share one larger than the one before.
    assert all(later <= earlier + 1 for earlier, later in pairwise(shares))
    owners = [law.rank_at(position, total) for position in range(total)]
    assert owners == [rank for rank, share in enumerate(shares) for _ in range(share)]


def test_ranks_are_drawn_by_a_power_law():
    """The share of a rank falls off like (rank + 1) ** -exponent."""
    law = PowerLaw(10_000, 0.9)
    drawn = Counter(law.rank(mix_bits(number) / 2**64) for number in range(100_000))
    assert min(drawn) >= 0
    assert max(drawn) < 10_000
    for low, high in ((0, 9), (9, 99), (99, 999)):
        ratio = sum(drawn[low + place] for place in range(10)) / sum(drawn[high + place * 10] for place in range(10))
        assert 10**0.9 * 0.6 < ratio < 10**0.9 * 1.6
    assert law.rank(0.0) == 0
    assert law.rank(1 - 2**-53) == 9_999


@pytest.mark.parametrize("count", [1, 2, 12, 97, 1_000])
def test_scattering_loses_nothing(count: int):
    """A permutation, asked both ways; another seed gives another one."""
    scatter = ScatteredOrder(3, count)
    places = [scatter.place(number) for number in range(count)]
    assert sorted(places) == list(range(count))
    assert [scatter.number(place) for place in places] == list(range(count))
    assert count < 10 or places != [ScatteredOrder(4, count).place(number) for number in range(count)]


def test_population_is_as_skewed_as_the_web():
    """Pages add up; a tenth of the hosts has most of them; hosts a PLD, and in-degrees of PLDs, are heavy-tailed."""
    population = Population(1, 5_000, 1_000_000)
    sizes = sorted(population.pages_of(host) for host in range(5_000))
    assert sum(sizes) == 1_000_000
    assert sizes[0] >= 1
    assert sizes[-1] == population.largest_size() > 100 * sizes[2_500]
    plds = Counter(population.pld_of(host) for host in range(5_000))
    assert len(plds) == population.plds == pytest.approx(5_000 / 3.5, abs=1)
    assert max(plds.values()) > 20 * sorted(plds.values())[len(plds) // 2]
    links = Counter(population.pld_of(population.linked_host(mix_bits(draw) >> 32)) for draw in range(100_000))
    assert links.most_common(1)[0][1] > 50 * 100_000 / population.plds
    assert len(links) > population.plds * 0.9
    servers = Counter(population.server_of(host) for host in range(5_000))
    assert population.servers == 5_000 // 28
    assert len(servers) > population.servers / 2
    assert servers.most_common(1)[0][1] > 100


def test_equal_hosts_are_linked_to_equally():
    """With as many pages a host, no host is linked to more than another."""
    population = Population(1, 50, pages_per_host=9)
    assert {population.pages_of(host) for host in range(50)} == {9}
    links = Counter(population.linked_host(mix_bits(draw) >> 32) for draw in range(50_000))
    assert max(links.values()) < 1.2 * min(links.values())


def test_largest_population_costs_nothing():
    """Any host of 10^6 with 10^9 pages is known at once."""
    population = Population(1, 10**6, 10**9)
    assert sum(population.pages_of(host) for host in range(0, 10**6, 5_003)) > 200
    assert population.first_host(population.plds) == 10**6
