"""What a Dockerfile builds, made and run without Docker: the kernel's namespaces do what a daemon would.

Each stage is an overlay on this machine's file system, which takes the place of the base image; its `python` and `pip`
are those of an empty virtual environment, with a pip as recent as a base image's. COPY, RUN, WORKDIR, USER, ENV and
ENTRYPOINT do what Docker does with them, and whatever else the file says is left to hadolint. Needs root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.support.running.processes import spawn, wait_until
from tests.support.servers import ops_files

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence

PYTHON = "/opt/base-image"
# The arguments: root, upper and work directory of an overlay.
_MOUNT = 'mount -t overlay overlay -o "lowerdir=/,upperdir=$2,workdir=$3" "$1"'
# The argument: the root of what is to run.
_ENTER = (
    'set -e; root=$1; mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount -t tmpfs tmpfs "$root/tmp"'
)


class Stage:
    """One stage of a build; it begins with what another one has made, if there is a base."""

    def __init__(self, directory: Path, base: Stage | None = None) -> None:
        self.directory = directory
        layers = [directory / name for name in ("root", "upper", "work")]
        for layer in layers:
            layer.mkdir(parents=True)
        if base is not None:
            shutil.copytree(base.directory / "upper", directory / "upper", symlinks=True, dirs_exist_ok=True)
        self.workdir = "/"
        mounted = f"set -e; {_MOUNT}; echo mounted; exec sleep infinity"
        # The overlay is mounted as long as this process lives, for it alone.
        self._holder = spawn(
            [_program("unshare"), "--mount", "--propagation", "private", "sh", "-c", mounted, "sh", *map(str, layers)],
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"mounted\n", "overlays need root, and a kernel that has them"

    @classmethod
    def with_python(cls, directory: Path) -> Stage:
        """What FROM brings: an empty environment with a Python, closed."""
        made = cls(directory)
        python = Path(sys._base_executable)  # type: ignore[attr-defined]
        above = [str(each) for each in python.resolve().parents]
        made.run(f"chmod o+x {shlex.join(above)}; {python} -m venv {PYTHON}")
        made.run("python -m pip install --no-cache-dir --upgrade pip")
        made.close()
        return made

    def close(self) -> None:
        """Unmount it."""
        self._holder.kill()
        self._holder.wait()
        assert self._holder.stdout is not None
        self._holder.stdout.close()

    def path(self, inside: str) -> Path:
        """Where a file of this stage lies, if the stage has made it."""
        return self.directory / "upper" / (Path(self.workdir) / inside).relative_to("/")

    def copy(self, sources: Sequence[Path], target: str) -> None:
        """COPY: a directory's content, or files into a directory."""
        for source in sources:
            into = self.path(target)
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, into, dirs_exist_ok=True, ignore=ignored)
            else:
                into.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, into)

    def run(self, line: str) -> None:
        """RUN: a line of shell, by root."""
        at = f"umask 022; mkdir -p {self.workdir}; cd {self.workdir}; {line}"
        inside = f'{_ENTER}; exec chroot "$root" env -i {_path()} sh -c {shlex.quote(at)}'
        done = subprocess.run(self.inside(inside), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"

    def inside(self, script: str) -> list[str]:
        """The command line that runs a script where the overlay is mounted; its argument is the overlay's root."""
        holder = ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt"]
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        return [_program("env"), *holder, *apart, "sh", "-c", script, "sh", str(self.directory / "root")]


class Image(Stage):
    """The last stage of ops/docker/Dockerfile, built, and containers of it."""

    environment: dict[str, str]
    entrypoint: list[str]
    user: str

    @classmethod
    def build(cls, directory: Path) -> Image:
        """Build it from the project."""
        base = Stage.with_python(directory / "base")
        stages: dict[str, Stage] = {}
        made: Image | None = None
        for word, rest in ops_files.instructions():
            if word == "FROM":
                name = rest.partition(" AS ")[2]
                made = cls(directory / (name or "last"), base)
                stages[name] = made
            assert made is not None
            if word == "WORKDIR":
                made.workdir = rest
            elif word == "RUN":
                made.run(rest)
            elif word == "USER":
                made.user = rest
            elif word == "COPY":
                words = rest.split()
                of_stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
                *sources, target = words
                found = [
                    ops_files.PROJECT / each if of_stage is None else stages[of_stage].path(each) for each in sources
                ]
                made.copy(found, target)
        for name, stage in stages.items():
            if name:
                stage.close()
        assert made is not None
        made.environment = ops_files.image_environment()
        [made.entrypoint] = ops_files.argument_lists("ENTRYPOINT")
        return made

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], mounts: Mapping[str, Path], log: Path
    ) -> Container:
        """Start a container: a read-only file system but for /tmp and what is mounted, its command as process 1."""
        binds = "".join(_bind(source, to) for to, source in mounts.items())
        given = shlex.join(f"{name}={value}" for name, value in {**self.environment, **environment}.items())
        words = shlex.join([*self.entrypoint, *command])
        run = f'exec chroot --userspec={self.user} "$root" env -i -C {self.workdir} {_path()} {given} {words}'
        with log.open("wb") as output:
            inside = self.inside(f'{_ENTER}; {binds}mount -o remount,ro,bind "$root"; {run}')
            process = spawn(inside, stdout=output, stderr=output)
        return Container(process, self.user, log)


class Container:
    """A command as process 1 of its own process and mount namespaces; the network is this machine's."""

    def __init__(self, process: subprocess.Popen[bytes], user: str, log: Path) -> None:
        self._process = process
        self._user, self._group = user.split(":")
        self.log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # unshare, which takes the container with it
        self._process.wait()

    def _first(self) -> int:
        """Process 1, by its id outside."""
        assert self._process.poll() is None, f"the container has ended: {self.log.read_text()[-3000:]}"
        return _child_of(self._process.pid)

    def run(self, command: Sequence[str]) -> int:
        """Run a command in the container, as `docker exec` does; its exit status."""
        where = ["--target", str(self._first()), "--mount", "--pid", "--root", "--wd"]
        words = ["nsenter", *where, "-S", self._user, "-G", self._group, "env", _path(), *command]
        return subprocess.run(words, capture_output=True, check=False).returncode

    def send(self, number: signal.Signals) -> None:
        """Send a signal to process 1, as `docker stop` and `docker kill` do."""
        os.kill(self._first(), number)

    def send_to_node(self, number: signal.Signals) -> None:
        """Send a signal to the process that process 1 has started."""
        os.kill(_child_of(self._first()), number)

    def wait(self, timeout_s: float) -> int:
        """The exit status; 128 and the number of the signal that ended process 1."""
        status = self._process.wait(timeout_s)
        return status if status >= 0 else 128 - status


def _child_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    wait_until(lambda: bool(children.read_text().split()), "the container has its processes")
    return int(children.read_text().split()[0])


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"{name} is missing"
    return found


def _bind(source: Path, to: str) -> str:
    """Shell that mounts a directory or a file, as a volume or a secret is."""
    make = f'mkdir -p "$root{to}"' if source.is_dir() else f'mkdir -p "$root{Path(to).parent}"; : >"$root{to}"'
    return f'{make}; mount --bind {shlex.quote(str(source))} "$root{to}"; '


def _path() -> str:
    return f"PATH={PYTHON}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
