"""Refuses addresses inside the operator's own network, resolved ones too, by copies of the IANA registries.

An IPv6 address that carries an IPv4 address is judged by that.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_IPV4 = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/32", "unspecified"),
        ("0.0.0.0/8", "reserved"),  # "this network"; Linux connects 0.x to itself
        ("10.0.0.0/8", "private"),
        ("100.100.100.200/32", "metadata"),  # Alibaba Cloud
        ("100.64.0.0/10", "shared"),  # behind a provider's NAT, RFC 6598
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "metadata"),  # Azure; a public address that only its guests can reach
        ("169.254.169.254/32", "metadata"),  # AWS, Azure, Google and others
        ("169.254.170.2/32", "metadata"),  # credentials of AWS containers
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.192/32", "metadata"),  # Oracle Cloud
        ("192.0.0.0/24", "reserved"),  # IETF protocols
        ("192.0.2.0/24", "reserved"),  # documentation
        ("192.88.99.0/24", "reserved"),  # the former 6to4 relays
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved"),  # benchmarks
        ("198.51.100.0/24", "reserved"),  # documentation
        ("203.0.113.0/24", "reserved"),  # documentation
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),  # with the broadcast address
    )
)

_IPV6 = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fd00:ec2::254/128", "metadata"),  # AWS
        ("fd20:ce::254/128", "metadata"),  # Google
        ("64:ff9b:1::/48", "private"),  # a network's own NAT64, RFC 8215
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),  # the former site-local addresses
        ("ff00::/8", "multicast"),
        ("2001::/23", "reserved"),  # IETF protocols, with Teredo and its hidden IPv4 addresses
        ("2001:db8::/32", "reserved"),  # documentation
        ("3fff::/20", "reserved"),  # documentation
    )
)

_GLOBAL_UNICAST = IPv6Network("2000::/3")

# Networks whose addresses carry an IPv4 address, and how many bits follow it.
_CARRIERS = tuple(
    (IPv6Network(network), shift)
    for network, shift in (
        ("::ffff:0:0/96", 0),  # mapped
        ("::ffff:0:0:0/96", 0),  # translated, RFC 2765
        ("::/96", 0),  # compatible, deprecated
        ("64:ff9b::/96", 0),  # NAT64
        ("2002::/16", 80),  # 6to4
    )
)


@lru_cache(8_192)
def refusal_of_address(address: str) -> str | None:
    """Return why an address must not be connected to, or None for an ordinary public address.

    An IPv6 zone (`%eth0`) is ignored.

    Returns:
        `unspecified`, `loopback`, `private`, `shared` (a provider's NAT), `link-local`, `multicast`, `metadata` (of
        cloud machines), `reserved`, or `malformed` if it is not an address.
    """
    carried = _embedded_address(address)
    if carried is None:
        return "malformed"
    return _refusal_v4(carried) if isinstance(carried, IPv4Address) else _refusal_v6(carried)


class AddressGuard:
    def __init__(self, allow_private: bool, allowed: Sequence[IPv4Network | IPv6Network] = ()) -> None:
        """Allow all addresses if `allow_private`, otherwise public ones and those in the `allowed` networks."""
        self._allow_private = allow_private
        self._allowed = allowed

    def refusal(self, found: Iterable[str]) -> str | None:
        """Return why not to connect to a host with these addresses, or None. One refused address refuses the host."""
        if self._allow_private:
            return None
        for address in found:
            reason = refusal_of_address(address)
            if reason is not None and not self._is_open(address):
                return reason
        return None

    def _is_open(self, address: str) -> bool:
        carried = _embedded_address(address)
        return carried is not None and any(carried in network for network in self._allowed)


@lru_cache(8_192)
def server_of(address: str) -> str:
    """Return the server behind an address: an IPv4 address, or an IPv6 address's /64, which one machine may own."""
    server = _embedded_address(address)
    if isinstance(server, IPv6Address):
        return str(IPv6Network((server, 64), strict=False))
    return str(server) if server is not None else address


def _embedded_address(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv4Address):
        return parsed
    parsed = IPv6Address(int(parsed))
    special = any(parsed in network for network, _ in _IPV6)
    for network, shift in () if special else _CARRIERS:
        if parsed in network:
            return IPv4Address(int(parsed) >> shift & 0xFFFFFFFF)
    return parsed


def _refusal_v4(address: IPv4Address) -> str | None:
    return next((reason for network, reason in _IPV4 if address in network), None)


def _refusal_v6(address: IPv6Address) -> str | None:
    for network, reason in _IPV6:
        if address in network:
            return reason
    return None if address in _GLOBAL_UNICAST else "reserved"
