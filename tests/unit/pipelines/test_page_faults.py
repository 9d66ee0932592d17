"""What may happen to WARC files and indexes: each is told in a line, holds up nothing else, is repaired by one step.

The faults of a run that is under way (a full disk, a kill, lost power, a disk that fails) are tried at every point in
tests/property/test_page_disk.py, in whole crawls in tests/integration/pages/test_page_disk.py and
tests/system/test_full_disk.py.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from isal import isal_zlib

from bigcrawl.commands.running import parse_action, run_action
from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, ConfigError, TransientStoreError
from bigcrawl.page_index.index_files import index_path, remove_indexes
from bigcrawl.pipelines.page_indexer import PageIndexer
from bigcrawl.pipelines.warc import usable_directory
from bigcrawl.warc.files import OsFiles, locked_file
from bigcrawl.warc.recovery import recover_directory
from bigcrawl.warc.segments import WarcWriter
from tests.support.ordinary_user import permissions_hold
from tests.support.page_disk import checked
from tests.unit.pipelines.test_group_commit import Desk
from tests.unit.warc.elsewhere import grow_old, write_elsewhere
from tests.unit.warc.reading import exchange, gzip_members

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bigcrawl.commands.result import Result

PAGES = 3


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-150])


def _spoil(path: Path) -> None:
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes(40) + data[middle + 40 :])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _garble(path: Path) -> None:
    path.write_bytes(bytes(range(255, -1, -1)) * 9)


def _close(path: Path) -> None:
    path.chmod(0)


def _block(path: Path) -> None:
    path.unlink()
    path.mkdir()


def sealed(directory: Path, name: str, first: int, *, is_open: bool = False) -> Path:
    """A file of some pages: complete, or left by a writer that died."""
    writer = WarcWriter(directory, name, "n")
    for number in range(first, first + PAGES):
        writer.write(exchange(number))
    writer.close()
    (path,) = directory.glob(f"{name}-*.warc.gz")
    return path.rename(f"{path}.open") if is_open else path


def start(directory: Path) -> None:
    """What a start does with the files of earlier runs."""
    indexer = PageIndexer(("cdxj",), 0o600, lambda _: None)
    recover_directory(directory, remove_indexes=remove_indexes)
    indexer.add_missing(directory)
    indexer.end(120)


def asked(directory: Path, *words: str) -> Result:
    config = read_config({"BIGCRAWL_WARC_DIR": str(directory), "BIGCRAWL_STATE_DIR": str(directory / "no state")})
    return run_action(config, "warc", parse_action("warc", list(words)))


def is_found(directory: Path, number: int) -> bool:
    try:
        return bool(asked(directory, "extract", f"http://a.example/{number}").data["body_bytes"])
    except BigcrawlError:
        return False


def open_again(path: Path) -> None:
    """Give a damaged file to a start, some time later."""
    grow_old(path.rename(f"{path}.open"))
    start(path.parent)


def repair(path: Path) -> None:
    """Do what `verify` advises for a damaged file."""
    found = asked(path.parent, "repair")
    assert found.status == 0
    assert [each["file"] for each in found.data["repaired"]] == [str(path)]


def repair_open(path: Path) -> None:
    """Do the same with a file whose writer has died some time ago."""
    grow_old(path.rename(f"{path}.open"))
    repair(path)


@pytest.mark.parametrize("way", [repair, open_again, repair_open], ids=lambda way: way.__name__)
@pytest.mark.parametrize("harm", [_cut, _spoil, _empty, _garble], ids=lambda harm: harm.__name__)
def test_a_damaged_file_is_told_and_repaired(
    tmp_path: Path, harm: Callable[[Path], None], way: Callable[[Path], None]
) -> None:
    """All pages but the damaged one are kept and indexed, other files untouched; its old index is not believed.

    Of a file whose writer died, those before the damage.
    """
    path, other = sealed(tmp_path, "a", 0), sealed(tmp_path, "b", 10)
    start(tmp_path)
    harm(path)
    found = asked(tmp_path, "verify")
    assert found.status == 1
    assert [each["file"] for each in found.data["damaged"]] == [str(path)]
    assert asked(tmp_path, "verify", str(other)).status == 0
    assert asked(tmp_path, "index").data["files"] == 2
    kept = {number for number in range(PAGES) if is_found(tmp_path, number)}
    assert len(kept) >= PAGES - 1 or harm is not _spoil
    if way is not repair:
        kept = set(range(min({*range(PAGES)} - kept, default=PAGES)))
    way(path)
    assert {item.number for item in checked(tmp_path).items} == kept | set(range(10, 10 + PAGES))
    assert asked(tmp_path, "verify").status == 0
    assert {number for number in range(PAGES) if is_found(tmp_path, number)} == kept


def test_a_repair_writes_over_no_file_that_is_open(tmp_path: Path) -> None:
    """It may be one that a writer has under this name; both are as they were, and the operator is told."""
    path = sealed(tmp_path, "a", 0)
    _cut(path)
    opened = tmp_path / f"{path.name}.open"
    opened.write_bytes(b"what a writer has written")
    before = path.read_bytes()
    found = asked(tmp_path, "repair")
    assert (found.status, found.data["repaired"]) == (1, [])
    assert "rename or remove one of the two" in found.data["left"][0]
    assert (path.read_bytes(), opened.read_bytes()) == (before, b"what a writer has written")


def test_a_repair_closes_files_whose_writers_have_died_and_no_others(tmp_path: Path) -> None:
    """A writer that lives goes on; with a name, that file alone is looked at."""
    dead, other = sealed(tmp_path, "a", 0, is_open=True), sealed(tmp_path, "b", 10)
    dead.write_bytes(dead.read_bytes()[:-150])
    asked(tmp_path, "index")
    writer = WarcWriter(tmp_path, "c", "n")
    writer.write(exchange(20))
    assert asked(tmp_path, "repair", str(other)).data == {"repaired": [], "left": []}
    found = asked(tmp_path, "repair")
    closed = dead.with_name(dead.name.removesuffix(".open"))
    assert found.status == 0
    assert [each["file"] for each in found.data["repaired"]] == [str(closed)]
    assert is_found(tmp_path, 0)
    assert [path.name[0] for path in tmp_path.glob("*.open")] == ["c"]
    writer.write(exchange(21))
    writer.close()
    asked(tmp_path, "index")
    assert asked(tmp_path, "verify").status == 0
    assert all(is_found(tmp_path, number) for number in (20, 21))


def test_a_repair_leaves_a_file_that_somebody_is_at_work_on(tmp_path: Path) -> None:
    """It keeps its name, under which he finds it; once he is done, a second call repairs it."""
    path = sealed(tmp_path, "a", 0)
    _cut(path)
    with locked_file(path) as is_ours:
        assert is_ours
        found = asked(tmp_path, "repair")
        assert (found.status, found.data["repaired"]) == (1, [])
        assert "another process is at work on it" in found.data["left"][0]
        assert list(tmp_path.iterdir()) == [path]
    repair(path)


def test_a_repair_goes_on_behind_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """It is told; damaged files behind it by name are repaired."""
    bad, path = tmp_path / "a.warc.gz", sealed(tmp_path, "b", 0)
    _block(sealed(tmp_path, "a", 0).rename(bad))
    _cut(path)
    found = asked(tmp_path, "repair")
    assert (found.status, [each["file"] for each in found.data["repaired"]]) == (1, [str(path)])
    assert found.data["left"] == [f"{bad} cannot be repaired: Is a directory"]


def test_a_repair_that_the_disk_refuses_says_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its name back; if the disk refuses that too, it ends in `.open`, and the next start tries again."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def rename(files: OsFiles, source: Path, target: Path) -> None:
        if source.suffix == ".open":
            refuse()
        source.rename(target)

    path = sealed(tmp_path, "a", 0)
    _cut(path)
    with monkeypatch.context() as failing:
        failing.setattr("bigcrawl.commands.pages.files.recover_file", refuse)
        assert asked(tmp_path, "repair").data["left"] == [f"{path} cannot be repaired: Input/output error"]
        failing.setattr(OsFiles, "rename", rename)
        [left] = asked(tmp_path, "repair").data["left"]
    assert "ends in .open now" in left
    grow_old(path.with_name(f"{path.name}.open"))
    start(tmp_path)
    assert asked(tmp_path, "verify").status == 0


def test_a_repair_ends_at_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files behind would not fare better; the file is as it was, for another call."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = sealed(tmp_path, "a", 0)
    _cut(path)
    with monkeypatch.context() as full:
        full.setattr("bigcrawl.commands.pages.files.recover_file", refuse)
        with pytest.raises(TransientStoreError, match="No space left"):
            asked(tmp_path, "repair")
    assert path.exists(), "it has its name back"
    assert asked(tmp_path, "repair").status == 0
    start(tmp_path)
    assert asked(tmp_path, "verify").status == 0


@pytest.mark.parametrize("harm", [_cut, _spoil, _empty, _garble, _block], ids=lambda harm: harm.__name__)
def test_a_damaged_index_is_told_and_made_again(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """By `index`; until then pages of other files are found, and a page that is not is told with the remedy."""
    path, _ = sealed(tmp_path, "a", 0), sealed(tmp_path, "b", 10)
    start(tmp_path)
    harm(index_path(path))
    found = asked(tmp_path, "verify")
    assert found.status == 1
    assert found.data["damaged"] == []
    assert "scrapy frontier warc index" in found.text or "Is a directory" in found.text
    assert all(is_found(tmp_path, number) for number in range(10, 10 + PAGES))
    if harm is _block:
        index_path(path).rmdir()
    assert asked(tmp_path, "index").status == 0
    assert asked(tmp_path, "verify").status == 0
    assert all(is_found(tmp_path, number) for number in range(PAGES))


def test_an_absent_index_is_made_by_the_next_start(tmp_path: Path) -> None:
    """As after a kill, a full disk or an update; `verify` says so, which is no damage."""
    path = sealed(tmp_path, "a", 0)
    assert asked(tmp_path, "verify").status == 0
    start(tmp_path)
    assert asked(tmp_path, "verify").data["unindexed"] == []
    assert checked(tmp_path).items
    remove_indexes(path)
    remove_indexes(path)
    assert asked(tmp_path, "verify").data["unindexed"] == [str(path)]


@pytest.mark.parametrize("what", ["file", "open file", "index"])
def test_what_may_not_be_read_holds_up_nothing_else(tmp_path: Path, what: str) -> None:
    """Start, verify, index and extract go on with the other files, and say which it is; it is fine once it may be."""
    path, other = sealed(tmp_path, "a", 0, is_open=what == "open file"), sealed(tmp_path, "b", 10)
    if what == "index":
        start(tmp_path)
    closed = index_path(path) if what == "index" else path
    closed.chmod(0)
    with permissions_hold():
        start(tmp_path)
        assert closed.exists()
        assert index_path(other).exists()
        found = asked(tmp_path, "verify")
        assert found.status == (0 if what == "open file" else 1)
        assert found.data["unreadable"] == (
            [] if what == "open file" else [f"{closed} cannot be read: Permission denied"]
        )
        again = asked(tmp_path, "index")
        assert len(again.data["unreadable"]) == (what == "file")
        assert is_found(tmp_path, 10)
        assert is_found(tmp_path, 0) is (what == "index"), "an index is made in the place of one that may not be read"
    closed.chmod(0o600)
    start(tmp_path)
    assert asked(tmp_path, "verify").status == 0
    assert all(is_found(tmp_path, number) for number in (0, 10))


@pytest.mark.parametrize("way", ["start", "index"])
def test_a_disk_that_is_full_while_indexes_are_made_leaves_none_that_is_half(tmp_path: Path, way: str) -> None:
    """The kernel refuses; the files stay, and are indexed once there is room."""
    for name, first in (("a", 0), ("b", 100)):
        sealed(tmp_path, name, first)
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from tests.unit.pipelines.test_page_faults import asked, start\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        f"{'start(Path(sys.argv[1]))' if way == 'start' else 'asked(Path(sys.argv[1]), sys.argv[2])'}"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path, way], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert not list(tmp_path.glob("*.cdxj*"))
    start(tmp_path)
    assert asked(tmp_path, "verify").status == 0


def test_a_disk_that_is_full_while_a_file_is_recovered_keeps_all_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is damaged needs room beside it; without room the file waits as it is, and the other is recovered."""
    path, other = sealed(tmp_path, "a", 0, is_open=True), sealed(tmp_path, "b", 10, is_open=True)
    _spoil(path)
    before = path.read_bytes()
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from tests.unit.pipelines.test_page_faults import start\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "start(Path(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert f"{path} cannot be recovered now" in done.stderr
    assert path.read_bytes() == before
    assert not other.exists()
    assert not list(tmp_path.glob("*.damaged*"))
    start(tmp_path)
    (damaged,) = tmp_path.glob("*.damaged")
    assert damaged.read_bytes() in before
    assert asked(tmp_path, "verify").status == 0


def test_what_is_sound_is_not_repaired_and_a_wrong_digest_cannot_be(tmp_path: Path) -> None:
    """A sound file keeps its bytes and its time; whole records with other bytes are left, which is told."""
    path, other = sealed(tmp_path, "a", 0), sealed(tmp_path, "b", 10)
    members = [member.replace(b"a page", b"a gape") for member in gzip_members(other.read_bytes())]
    other.write_bytes(b"".join(isal_zlib.compress(member, 2, 31) for member in members))
    before, when = path.read_bytes(), path.stat().st_mtime_ns
    found = asked(tmp_path, "repair")
    assert found.status == 1
    assert f"{other}: bad record at byte" in found.text
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, when)
    assert len(gzip_members(other.read_bytes())) == len(members)


def test_a_second_damage_does_not_take_the_place_of_the_first(tmp_path: Path) -> None:
    """Each rest is kept, under a name of its own; one that is kept already is not kept again."""
    path = sealed(tmp_path, "a", 0)
    whole = path.read_bytes()
    for number in range(1, 3):
        middle = len(whole) * (3 - number) // 3
        harmed = whole[:middle] + bytes(40) + b"%d" % number * 40 + whole[middle + 80 :]
        path.write_bytes(harmed)
        open_again(path)
        path.write_bytes(harmed)
        open_again(path)
        assert len(list(tmp_path.glob("*.damaged*"))) == number


def test_a_directory_that_vanishes_makes_nothing_safe_and_pauses_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Pages that were not safe are stored once there is a directory again; nothing is made in the place of a mount."""
    directory = tmp_path / "warc"
    directory.mkdir()

    async def scenario() -> None:
        at = Desk(directory, monkeypatch)
        at.store(0)
        await at.until(lambda: at.pipeline.writes.safe_pages == 1)
        directory.rename(tmp_path / "away")
        for number in (1, 2):
            at.store(number)
        await at.until(lambda: not at.pipeline.writes.is_flushed())
        assert at.pipeline.writes.safe_pages == 1
        assert not directory.exists()
        directory.mkdir()  # where nothing is mounted yet
        at.pipeline.writes._try_again()
        assert not at.pipeline.writes.is_flushed()
        assert not list(directory.iterdir())
        directory.rmdir()
        (tmp_path / "away").rename(directory)
        await at.until(lambda: at.pipeline.writes.is_flushed() and at.pipeline.writes.safe_pages == 3)
        await at.pipeline.close_spider()
        recover_directory(
            directory, remove_indexes=remove_indexes
        )  # closes a file that could not be sealed while it was away
        # Pages that were not safe are stored again, and those of a file that was away cannot be cut off.
        stored = at.stored()
        assert stored.count("http://a.example/0") == 1
        assert 1 <= stored.count("http://a.example/1") <= 2
        assert 1 <= stored.count("http://a.example/2") <= 2
        assert {*stored} == {"http://a.example/0", "http://a.example/1", "http://a.example/2"}

    asyncio.run(scenario())
    assert "cannot be written: [Errno 2] another process has removed or closed the file" in caplog.text


@pytest.mark.parametrize("verb", ["verify", "index", "extract"])
def test_commands_say_that_the_directory_is_not_there(tmp_path: Path, verb: str) -> None:
    """One line with the setting; a start finds nothing to do."""
    gone = tmp_path / "gone"
    with pytest.raises(BigcrawlError, match="BIGCRAWL_WARC_DIR"):
        asked(gone, verb, *(["http://a.example/0"] if verb == "extract" else []))
    assert recover_directory(gone) == []
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_file_of_another_machine_is_left_by_repair_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock may not be seen here; the line says when it is closed."""
    write_elsewhere(monkeypatch)
    opened = sealed(tmp_path, "a", 0, is_open=True)
    _cut(opened)
    before = opened.read_bytes()
    found = asked(tmp_path, "repair")
    assert (found.status, found.data["repaired"]) == (1, [])
    assert "may be written there; call again later" in found.text
    assert opened.read_bytes() == before
    grow_old(opened)
    found = asked(tmp_path, "repair")
    assert (found.status, len(found.data["repaired"])) == (0, 1)
    assert is_found(tmp_path, 1)


def test_a_directory_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is fetched; and no file of it is closed."""

    def refuse(*args: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    path = sealed(tmp_path, "a", 0, is_open=True)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(ConfigError, match="no locks; mount it with locks"):
        usable_directory(tmp_path)
    found = asked(tmp_path, "repair")
    assert found.status == 1
    assert "cannot be repaired: its file system has no locks (No locks available)" in found.text
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208
