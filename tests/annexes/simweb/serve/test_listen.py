from __future__ import annotations

import socket
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.addresses import address_of
from bigcrawl_simweb.serve.listen import SOCKETS_MAX, open_listeners
from tests.support.running.ports import bind_lasting

ADDRESSES = ["127.16.0.1", "127.16.0.2", "127.16.0.3"]
NO_DEVICE = "no-such-device"


def close_all(sockets: list[socket.socket]) -> None:
    for sock in sockets:
        sock.close()


def test_each_address_has_a_socket_where_none_can_be_tied_to_the_loopback_device():
    """Without a device to tie to, nothing but the addresses themselves is listened on, all on one port."""
    sockets = open_listeners(ADDRESSES, 0, NO_DEVICE)
    try:
        assert [sock.getsockname()[0] for sock in sockets] == ADDRESSES
        assert len({sock.getsockname()[1] for sock in sockets}) == 1
    finally:
        close_all(sockets)


def test_socket_for_all_addresses_is_tied_to_the_loopback_device():
    """One socket may listen on all addresses only if it takes connections from the machine itself alone."""
    sockets = open_listeners(ADDRESSES, 0)
    try:
        if len(sockets) == 1:
            device = sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
            assert device.rstrip(b"\0") == b"lo"
        else:
            assert [sock.getsockname()[0] for sock in sockets] == ADDRESSES
        with socket.create_connection((ADDRESSES[1], sockets[0].getsockname()[1])):
            pass
    finally:
        close_all(sockets)


def sockets_open() -> set[str]:
    """The sockets of this process, as the kernel numbers them."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that the list is read from
            found.add(str(descriptor.readlink()))
    return {name for name in found if name.startswith("socket:")}


@pytest.mark.parametrize("device", ["lo", NO_DEVICE])
@pytest.mark.parametrize("taken_at", ["127.16.0.1", "127.16.0.3"])
def test_taken_port_is_a_clear_error(device: str, taken_at: str):
    """A port that another program has is named, whichever address it has it on, and no socket stays open."""
    with socket.socket() as other:
        port = bind_lasting(other, taken_at)
        other.listen()
        before = sockets_open()
        with pytest.raises(ConfigError, match=rf"port {port} of .* cannot be used: .*; stop what uses it") as caught:
            open_listeners(ADDRESSES, port, device)
        assert sockets_open() <= before, caught.value.args  # while the error keeps alive what was not closed


def test_addresses_of_a_large_web_are_not_looked_at_where_one_socket_does_for_all():
    """A web of any size is one socket; where it cannot be, too many addresses are an error, not a long wait."""
    endless = map(address_of, count())
    sockets = []
    try:
        sockets = open_listeners(endless, 0)
        assert len(sockets) == 1
    except ConfigError as error:
        assert "cannot be tied to lo" in str(error)  # noqa: PT017 - either is right, each on its system
    close_all(sockets)
    with pytest.raises(ConfigError, match=f"more than {SOCKETS_MAX} addresses, .*; lower hosts, or .* as a proxy"):
        open_listeners(endless, 0, NO_DEVICE)
