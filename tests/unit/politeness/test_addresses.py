from __future__ import annotations

from ipaddress import ip_network

import pytest

from bigcrawl.politeness.addresses import AddressGuard, refusal_of_address, server_of
from tests.support.running.tables import each

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *(
        "128.0.0.1",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.1.1",
    ),
    *("192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15"),
    *("2606:4700::1111", "2a00:1450:4001::1", "2001:200::1", "2001:4860:4860::8888", "3ffe::1"),
    *("::ffff:8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "::8.8.8.8"),
]

REFUSED = {
    "unspecified": ["0.0.0.0", "::", "::ffff:0.0.0.0", "64:ff9b::"],
    "loopback": [
        *("127.0.0.1", "127.0.0.0", "127.255.255.255", "127.7.8.9", "::1", "0:0:0:0:0:0:0:1"),
        *(
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "::127.0.0.1",
        ),
    ],
    "private": [
        *("10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"),
        *("fc00::1", "fdff:ffff::1", "fec0::1", "64:ff9b:1::1", "64:ff9b:1:ffff::8.8.8.8"),
        *("::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:c0a8:101::1", "::192.168.1.1"),
    ],
    "shared": ["100.64.0.0", "100.127.255.255", "::ffff:100.64.0.1", "2002:6440:1::"],
    "link-local": [
        *("169.254.0.0", "169.254.255.255", "fe80::1", "fe80::1%eth0", "febf::1", "::ffff:169.254.1.1"),
    ],
    "metadata": [
        *(
            "169.254.169.254",
            "169.254.170.2",
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "192.0.0.192",
        ),
        *(
            "168.63.129.16",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "::169.254.169.254",
        ),
    ],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff00::", "::ffff:224.0.0.1"],
    "reserved": [
        *(
            "0.0.0.1",
            "0.255.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.19.255.255",
        ),
        *(
            "198.51.100.7",
            "203.0.113.7",
            "240.0.0.1",
            "255.255.255.255",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
        ),
        *(
            "3fff::1",
            "100::1",
            "5f00::1",
            "4000::1",
            "1fff::1",
            "fe00::1",
            "::ffff:192.0.2.1",
            "::2",
            "::ffff:0.0.0.1",
        ),
    ],
    "malformed": [
        "",
        "localhost",
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "01.2.3.4",
        "[::1]",
        "1.2.3.4 ",
        "::1::",
        "0x7f.1",
    ],
}


@each("address", PUBLIC)
def test_public_addresses_are_not_refused(address: str) -> None:
    """Also the neighbours of each refused range, and public addresses carried in IPv6."""
    assert refusal_of_address(address) is None


@each(
    "address, reason",
    [(address, reason) for reason, addresses in REFUSED.items() for address in addresses],
)
def test_addresses_inside_a_network_are_refused_with_the_reason(address: str, reason: str) -> None:
    """First and last of each range, and the IPv6 forms that would reach them."""
    assert refusal_of_address(address) == reason


def test_guard_opens_what_its_operator_names() -> None:
    """Networks of both families, single addresses; what IPv6 carries is judged as the IPv4 address that it is."""
    guard = AddressGuard(allow_private=False, allowed=[ip_network("10.1.0.0/16"), ip_network("fd00:1::/32")])
    for address in ("10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd00:1:2::3", "8.8.8.8"):
        assert guard.refusal([address]) is None, address
    for address, reason in (("10.2.0.0", "private"), ("fd00:2::1", "private"), ("127.0.0.1", "loopback")):
        assert guard.refusal([address]) == reason
    assert guard.refusal(["fd00:ec2::254"]) == guard.refusal(["169.254.169.254"]) == "metadata"
    assert guard.refusal(["no address"]) == "malformed"


def test_guard_closes_a_host_for_one_of_its_addresses() -> None:
    """Which one a client takes is not always ours to say."""
    guard = AddressGuard(allow_private=False)
    assert guard.refusal(["8.8.8.8", "10.0.0.1"]) == "private"
    assert guard.refusal(["8.8.8.8", "2606:4700::1111"]) is None
    assert guard.refusal([]) is None


def test_guard_may_be_open_to_all() -> None:
    """BIGCRAWL_ALLOW_PRIVATE_ADDRESSES asks no more questions."""
    guard = AddressGuard(allow_private=True)
    assert all(guard.refusal([address]) is None for addresses in REFUSED.values() for address in addresses)


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("64:ff9b::c000:201", "192.0.2.1"),
        ("2002:c000:201::5", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2606:4700::1111", "2606:4700::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("nonsense", "nonsense"),
        ("", ""),
    ],
)
def test_server_is_an_ipv4_address_or_a_network_of_ipv6(address: str, server: str) -> None:
    """Whoever has a /64 has 2^64 addresses for one machine."""
    assert server_of(address) == server
