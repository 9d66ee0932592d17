"""Cut a Redis append-only file back to a second, as a machine's crash would.

With `aof-timestamp-enabled yes` Redis writes a line `#TS:<unix seconds>` before the first command of each
second, so everything behind the first annotation later than T was written after the second T. Since Redis
7 the AOF is a directory: a manifest names a base file (a snapshot) and the incremental files behind it.

    file <name> seq <n> type b|i|h       base, incremental, history (about to be deleted)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def cut_aof_to(directory: Path, timestamp_s: int) -> int:
    """Cut everything off that was written after the second `timestamp_s`; the server must not run.

    Returns:
        How many bytes were cut off.

    Raises:
        ValueError: the AOF was rewritten, so its base may hold later writes.
    """
    cut_bytes = 0
    for path in _incremental_files(directory):
        end = path.stat().st_size
        # Whole files go once one was cut: what is in them came later.
        keep = 0 if cut_bytes else _first_after(path.read_bytes(), timestamp_s)
        with path.open("r+b") as file:
            file.truncate(keep)
        cut_bytes += end - keep
    return cut_bytes


def cut_since(directory: Path, since_s: float) -> int:
    """Cut off what was written since about that time, and return how many bytes; the server must not run.

    An annotation tells a second; of that one, as much stays as the fraction asks for, up to the end of a transaction.
    """
    cut_bytes = 0
    for path in _incremental_files(directory):
        content = path.read_bytes()
        keep = 0 if cut_bytes else _first_after(content, int(since_s) - 1)
        if not cut_bytes:
            keep += int((_first_after(content, int(since_s)) - keep) * (since_s % 1))
            keep = _last_end_before(content, keep)
        with path.open("r+b") as file:
            file.truncate(keep)
        cut_bytes += len(content) - keep
    return cut_bytes


def size_of(directory: Path) -> int:
    """How many bytes of commands it has, for `commands_of`."""
    return sum(path.stat().st_size for path in _incremental_files(directory))


def commands_of(directory: Path, bytes_max: int | None = None) -> Iterator[list[bytes]]:
    """The commands in its first bytes, or all, oldest first; those of one script stand between MULTI and EXEC.

    A torn tail is left out.
    """
    for path in _incremental_files(directory):
        content = path.read_bytes()
        for words, _ in _commands(content if bytes_max is None else content[:bytes_max]):
            yield words
        bytes_max = None if bytes_max is None else max(0, bytes_max - len(content))


def _last_end_before(content: bytes, bytes_max: int) -> int:
    """Where the last command or transaction ends that is whole in the first bytes."""
    found, is_open = 0, False
    for words, end in _commands(content[:bytes_max]):
        is_open = words != [b"EXEC"] and (is_open or words == [b"MULTI"])
        found = found if is_open else end
    return found


def _commands(content: bytes) -> Iterator[tuple[list[bytes], int]]:
    """The commands, and where each ends."""
    at = 0
    while (line_end := content.find(b"\r\n", at)) >= 0:
        line, at = content[at:line_end], line_end + 2
        if not line.startswith(b"*"):
            continue  # an annotation
        words = []
        for _ in range(int(line[1:])):
            size_end = content.find(b"\r\n", at)
            if size_end < 0:
                return
            start = size_end + 2
            at = start + int(content[at + 1 : size_end]) + 2
            words.append(content[start : at - 2])
        if at > len(content):
            return
        yield words, at


def _incremental_files(directory: Path) -> Iterator[Path]:
    (manifest,) = directory.glob("*.manifest")
    for line in manifest.read_text().splitlines():
        words = line.split()
        entry = dict(zip(words[::2], words[1::2], strict=True))
        if entry["type"] == "b" and entry["seq"] != "1":
            raise ValueError(f"{directory / entry['file']} is a rewritten base: it cannot be cut to a second")
        if entry["type"] == "i":
            yield directory / entry["file"]


def _first_after(content: bytes, timestamp_s: int) -> int:
    """Offset of the first annotation later than `timestamp_s`, or the length when there is none.

    Walks the commands: a stored value may look like an annotation.
    """
    at = 0
    while at < len(content):
        line_end = content.find(b"\r\n", at)
        if line_end < 0:
            break  # a torn tail
        line, after = content[at:line_end], line_end + 2
        if line.startswith(b"#TS:") and int(line[4:]) > timestamp_s:
            return at
        if line.startswith(b"$"):
            after += int(line[1:]) + 2
        at = after
    return len(content)
