"""Maps hosts to loopback addresses and back."""

from __future__ import annotations

from typing import Final

# Other programs use 127.0.0.1, and rarely 127.16.0.1 and above.
_FIRST_SECOND_OCTET: Final = 16
_LAST_SECOND_OCTET: Final = 254
# 1 to 254, so that no address resembles a network or broadcast address.
_HOSTS_PER_NET: Final = 254

HOSTS_MAX: Final = (_LAST_SECOND_OCTET - _FIRST_SECOND_OCTET + 1) * 256 * _HOSTS_PER_NET


def address_of(index: int) -> str:
    """Return the address of host `index`, 0 <= index < `HOSTS_MAX`: 127.16.0.1, 127.16.0.2, ..."""
    net, last = divmod(index, _HOSTS_PER_NET)
    second, third = divmod(net, 256)
    return f"127.{_FIRST_SECOND_OCTET + second}.{third}.{last + 1}"


def index_of(address: str) -> int | None:
    """Return the host with this address; None for others and for unusual spellings."""
    octets = address.split(".")
    if len(octets) != 4 or not all(octet.isascii() and octet.isdigit() for octet in octets):
        return None
    first, second, third, last = map(int, octets)
    index = ((second - _FIRST_SECOND_OCTET) * 256 + third) * _HOSTS_PER_NET + last - 1
    if first != 127 or not 0 <= index < HOSTS_MAX or address_of(index) != address:
        return None
    return index


def origin_of(address: str, port: int) -> str:
    """Return the origin in the WHATWG serialisation, which omits port 80."""
    return f"http://{address}" if port == 80 else f"http://{address}:{port}"
