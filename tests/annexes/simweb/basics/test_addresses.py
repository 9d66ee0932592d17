from __future__ import annotations

import pytest

from bigcrawl_simweb.basics.addresses import HOSTS_MAX, address_of, index_of, origin_of


def test_first_hosts_follow_each_other_from_127_16_0_1():
    """Hosts are numbered through the loopback range in order, and .0 and .255 are left out."""
    assert [address_of(index) for index in (0, 1, 253, 254)] == [
        "127.16.0.1",
        "127.16.0.2",
        "127.16.0.254",
        "127.16.1.1",
    ]
    assert address_of(HOSTS_MAX - 1) == "127.254.255.254"


def test_every_address_names_its_host():
    """An address and an index determine each other."""
    for index in (*range(600), *range(0, HOSTS_MAX, 99_991), HOSTS_MAX - 1):
        assert index_of(address_of(index)) == index


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.15.255.254", "127.16.0.0", "127.16.0.255", "127.255.0.1", "10.16.0.1"),
        *("127.16.0.01", "127.16.256.1", "127.16.1", "localhost", "", "127.16.0.-1", "127.16.0.\u0661"),
    ],
)
def test_other_addresses_are_nobodys(address: str):
    """What is not a host's address in its usual form belongs to no host."""
    assert index_of(address) is None


def test_origin_leaves_out_the_default_port():
    """Port 80 is no part of a canonical URL."""
    assert origin_of("127.16.0.1", 80) == "http://127.16.0.1"
    assert origin_of("127.16.0.1", 8080) == "http://127.16.0.1:8080"
