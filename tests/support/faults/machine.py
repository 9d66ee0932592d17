"""Machines of their own, as far as files go: mount namespaces in which the same paths are other disks. Takes root.

`Network` is the namespace that machines are made in; the store that they share is a disk there. A `Machine` has a disk
for everything, and in it one for the state and one for WARC files, which may be full or unmounted each alone, as its
mount of the store. It has a boot of its own, so that nodes of two machines take themselves for that: a lock file proves
nothing between them. All of it lies in memory, and is gone with the processes that hold the namespaces.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Sequence

STATE, WARC, STORE = "state", "warc", "store"
DISK_BYTES = {STATE: 64 << 20, WARC: 64 << 20, STORE: 192 << 20}
_BALLAST, _ZEROS = "ballast", bytes(1 << 20)

# A disk is mounted aside as well, so that it is whole when its mount is taken away.
_BEGIN = 'set -e; root=$1; mkdir -p "$root"; mount -t tmpfs -o mode=700,size=8m root "$root"; cd "$root"; mkdir .disks'
_DISK = "mkdir {name} .disks/{name}; mount -t tmpfs -o size={bytes} {name} .disks/{name}"
_MOUNT = "mount --bind .disks/{name} {name}"
_BOOT = "cat /proc/sys/kernel/random/uuid > boot; mount --bind boot /proc/sys/kernel/random/boot_id"
_READY = "echo ready; exec cat"


class _Namespace:
    """A mount namespace, and the process that holds it."""

    def __init__(self, root: Path, script: Sequence[str], within: _Namespace | None = None) -> None:
        """Make it; within another one, it begins with the mounts of that."""
        self.root = root
        command: list[str | Path] = [
            "/usr/bin/unshare",
            "--mount",
            "/bin/sh",
            "-c",
            "; ".join((*script, _READY)),
            "sh",
            root,
        ]
        self._holder = spawn(
            [*(within.entered() if within else ()), *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        said = self._holder.stdout.readline()
        assert said == b"ready\n", f"no mount namespace: {said!r}; this takes root, and unshare and nsenter"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.kill()
        self._holder.communicate()

    def entered(self) -> list[str]:
        """What a command begins with that runs in it."""
        return ["/usr/bin/nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", f"--wdns={Path.cwd()}", "--"]

    def run(self, *words: str | Path) -> str:
        """Run a command in it, which must succeed."""
        done = subprocess.run([*self.entered(), *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def disk(self, name: str) -> Path:
        """Where a disk is found from outside, also while it is not mounted."""
        return Path(f"/proc/{self._holder.pid}/root{self.root}/.disks/{name}")

    def fill(self, name: str) -> None:
        """Let a disk be full."""
        with (self.disk(name) / _BALLAST).open("wb", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(_ZEROS)

    def make_room(self, name: str) -> None:
        """Undo `fill`."""
        (self.disk(name) / _BALLAST).unlink(missing_ok=True)


class Network(_Namespace):
    """What machines share: a disk with the store."""

    def __init__(self, root: Path) -> None:
        pages = "mkdir .disks/store/pages"  # which nobody makes who moves files to it
        super().__init__(root, [_BEGIN, _DISK.format(name=STORE, bytes=DISK_BYTES[STORE]), pages])


class Machine(_Namespace):
    """A machine whose disks are mounted at `root`/state and `root`/warc, and the network's store at `root`/store."""

    def __init__(self, root: Path, network: Network) -> None:
        disks = [_DISK.format(name=name, bytes=DISK_BYTES[name]) for name in (STATE, WARC)]
        mounts = [_MOUNT.format(name=name) for name in (STATE, WARC)]
        store = f'mkdir store .disks/store; mount --bind "{network.root}/.disks/store" .disks/store'
        super().__init__(root, [_BEGIN, *disks, store, *mounts, _MOUNT.format(name=STORE), _BOOT], network)

        self._away: set[str] = set()
        self._read_only: set[str] = set()

    def mount(self, name: str) -> None:
        """Mount a disk again."""
        self.run("mount", "--bind", self.root / ".disks" / name, self.root / name)
        self._away.remove(name)
        if name in self._read_only:
            self._remount(name)

    def unmount(self, name: str) -> None:
        """Take a disk away; files that are open stay open."""
        self.run("umount", "--lazy", self.root / name)
        self._away.add(name)

    def refuse_writes(self, name: str) -> None:
        """Let a disk be read-only here."""
        self._read_only.add(name)
        self._remount(name)

    def allow_writes(self, name: str) -> None:
        """Undo `refuse_writes`."""
        self._read_only.discard(name)
        self._remount(name)

    def _remount(self, name: str) -> None:
        if name not in self._away:
            how = "ro" if name in self._read_only else "rw"
            self.run("mount", "-o", f"remount,bind,{how}", self.root / name)


@dataclass
class MachineCrawl(Crawl):
    """A crawl whose processes run on a machine."""

    machine: Machine | None = None

    def command(self) -> list[str]:
        assert self.machine is not None
        return [*self.machine.entered(), *super().command()]

    def command_there(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`scrapy frontier WORDS` on the machine."""
        assert self.machine is not None
        command = [*self.machine.entered(), sys.executable, "-m", "scrapy", "frontier", *words, *self.options()]
        return subprocess.run(command, env=self._environment(), capture_output=True, text=True, check=False)
