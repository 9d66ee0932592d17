"""A thread without root's right to read and write what it may not."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION_3: Final = 0x20080522
_OVERRIDES: Final = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_libc: Final = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Rights(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def permissions_hold() -> Iterator[None]:
    """Within the block, permissions of files hold for this thread and those that it starts, also if it is root's."""
    if os.geteuid() != 0:
        yield
        return
    header, rights = _Header(_VERSION_3, 0), (_Rights * 2)()
    _called(_libc.capget(ctypes.byref(header), rights))
    before = rights[0].effective
    rights[0].effective = before & ~_OVERRIDES
    _called(_libc.capset(ctypes.byref(header), rights))
    try:
        yield
    finally:
        rights[0].effective = before
        _called(_libc.capset(ctypes.byref(header), rights))


def _called(status: int) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
