"""Which loopback address a host of the simulated web has, and back again."""

from __future__ import annotations

from typing import Final

# 127.0.0.1 belongs to everybody else on the machine; 127.16.0.1 is far enough away from it that no
# other program listens there by habit.
_FIRST_SECOND_OCTET: Final = 16
_LAST_SECOND_OCTET: Final = 254
# The last octet runs from 1 to 254, so that no address looks like a network or a broadcast address.
_HOSTS_PER_NET: Final = 254

HOSTS_MAX: Final = (_LAST_SECOND_OCTET - _FIRST_SECOND_OCTET + 1) * 256 * _HOSTS_PER_NET


def address_of(index: int) -> str:
    """The address of host `index`, 0 <= index < `HOSTS_MAX`: 127.16.0.1, 127.16.0.2, ..."""
    net, last = divmod(index, _HOSTS_PER_NET)
    second, third = divmod(net, 256)
    return f"127.{_FIRST_SECOND_OCTET + second}.{third}.{last + 1}"


def index_of(address: str) -> int | None:
    """The host whose address this is; None when it is no host's, or is not in its usual form."""
    octets = address.split(".")
    if len(octets) != 4 or not all(octet.isascii() and octet.isdigit() for octet in octets):
        return None
    first, second, third, last = map(int, octets)
    index = ((second - _FIRST_SECOND_OCTET) * 256 + third) * _HOSTS_PER_NET + last - 1
    if first != 127 or not 0 <= index < HOSTS_MAX or address_of(index) != address:
        return None
    return index


def origin_of(address: str, port: int) -> str:
    """Scheme, address and port as the WHATWG serialisation has them: port 80 is left out."""
    return f"http://{address}" if port == 80 else f"http://{address}:{port}"
