"""Opens sockets for all hosts of a web, unreachable from other machines."""

from __future__ import annotations

import errno
import socket
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Connections that are not accepted yet; the system's limit (net.core.somaxconn) is the same or larger.
BACKLOG: Final = 4096
# Every poll checks all sockets; up to this number that is still fast.
SOCKETS_MAX: Final = 4096
# A free port of the first address is nearly always free on the others too.
_PORT_TRIES: Final = 20


def open_listeners(addresses: Iterable[str], port: int, device: str = "lo") -> list[socket.socket]:
    """Listen on one port of all addresses, which must be loopback; port 0 chooses a free one.

    A single socket suffices if it can be bound to the loopback device, which Linux allows every user since 5.7, and
    root before. Otherwise each address has a socket. Raises ConfigError if the port is taken, or there are too many
    addresses.
    """
    try:
        wide = _tied_to_device(device)
    except OSError as error:
        few = list(islice(addresses, SOCKETS_MAX + 1))
        if len(few) > SOCKETS_MAX:
            raise ConfigError(
                f"more than {SOCKETS_MAX} addresses, and a single socket for all cannot be tied to "
                f"{device}: {error.strerror}; lower hosts, or listen on 127.0.0.1 and crawl through it as a proxy"
            ) from error
        return _one_each(few, port)
    return [_bind_and_listen(wide, "0.0.0.0", port)]  # noqa: S104 - limited to the loopback device


def _tied_to_device(device: str) -> socket.socket:
    option = getattr(socket, "SO_BINDTODEVICE", None)
    if option is None:
        raise OSError(errno.ENOPROTOOPT, "SO_BINDTODEVICE")
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, option, device.encode() + b"\0")
    except OSError:
        sock.close()
        raise
    return sock


def _one_each(addresses: Sequence[str], port: int) -> list[socket.socket]:
    for _ in range(0 if port else _PORT_TRIES - 1):
        with suppress(ConfigError):
            return _try_one_each(addresses, port)
    return _try_one_each(addresses, port)


def _try_one_each(addresses: Sequence[str], port: int) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        for address in addresses:
            sockets.append(_bind_and_listen(_new_socket(), address, port))
            port = port or sockets[0].getsockname()[1]
    except ConfigError:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _new_socket() -> socket.socket:
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"no socket for every host: {error.strerror}; raise ulimit -n or lower hosts") from error


def _bind_and_listen(sock: socket.socket, address: str, port: int) -> socket.socket:
    try:
        # Accepted sockets inherit this: the last piece of an answer must not wait for an acknowledgement.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A restarted server must get its port back while old connections linger in TIME_WAIT.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        remedy = "stop what uses it or choose another port" if error.errno == errno.EADDRINUSE else "choose another"
        raise ConfigError(f"port {port} of {address} cannot be used: {error.strerror}; {remedy}") from error
    return sock
