"""WARC files are moved to a store, and are in one place at least, whatever fails and whenever the process is killed."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.page_index.index_files import index_file, index_path
from bigcrawl.page_store import uploads as uploads_module
from bigcrawl.page_store.uploads import DirectoryUploads, UploadResult
from bigcrawl.store.whole_files import StoredFiles
from bigcrawl.warc.files import locked_file
from tests.support.running import warm
from tests.support.servers.s3_server import FaultyS3, new_bucket
from tests.unit.page_index.test_index_files import URLS, warc_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

SUFFIXES = (".cdxj", ".parquet")
REQUIRED = (".cdxj",)
LONG_S = 300.0


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyS3]:
    with FaultyS3() as faulty:
        yield faulty


@pytest.fixture
def url(server: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server.become("")
    server.on_request = None
    bucket = new_bucket(server.url, monkeypatch)
    server.seen.clear()
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    yield f"{bucket}/pages"
    server.become("")
    server.on_request = None


def pages(directory: Path, urls: list[str] = URLS) -> Path:
    """A WARC file with its index."""
    path = warc_file(directory, urls)
    index_file(path, ["cdxj"])
    return path


def uploads(url: str) -> DirectoryUploads:
    return DirectoryUploads(StoredFiles(url, "S"), SUFFIXES, REQUIRED)


def in_store(url: str) -> dict[str, bytes]:
    fs, root = StoredFiles(url, "S")._fs, url.partition("://")[2]
    fs.invalidate_cache()
    return {path.rpartition("/")[2]: fs.cat_file(path) for path in fs.find(root)}


def by_name(*paths: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths}


def started(directory: Path, url: str, *options: str) -> subprocess.Popen[bytes]:
    command = ["bigcrawl.page_store", str(directory), url, "--known", ",".join(SUFFIXES)]
    return warm.start([*command, "--required", ",".join(REQUIRED), *options], stdout=subprocess.PIPE)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, list[dict[str, Any]]]:
    assert process.stdout
    with process.stdout:
        told = process.stdout.read()
    return process.wait(LONG_S), [json.loads(line) for line in told.splitlines()]


def test_files_move_with_their_indexes(tmp_path: Path, url: str) -> None:
    """What is not complete, or has no index yet, stays; a second look finds nothing to do."""
    whole, second = pages(tmp_path), pages(tmp_path, URLS[:2])
    unindexed = warc_file(tmp_path, URLS[:1])
    (tmp_path / "running.warc.gz.open").write_bytes(b"not yet")
    (tmp_path / "cut.warc.gz.damaged").write_bytes(b"for a look")
    expected = by_name(whole, index_path(whole), second, index_path(second))
    done = list(uploads(url).of_directory(tmp_path))
    assert [(each.path, each.was_there, each.problem) for each in done] == [(p, False, "") for p in (whole, second)]
    assert sum(each.bytes for each in done) == sum(map(len, expected.values()))
    assert in_store(url) == expected
    left = {unindexed.name, "running.warc.gz.open", "cut.warc.gz.damaged"}
    assert {path.name for path in tmp_path.iterdir()} == left
    assert list(uploads(url).of_directory(tmp_path)) == []
    index_file(unindexed, ["cdxj"])
    assert [each.path for each in uploads(url).of_directory(tmp_path)] == [unindexed]


def test_the_store_has_a_file_after_its_indexes(tmp_path: Path, url: str, server: FaultyS3) -> None:
    """Whoever finds a WARC file there finds its index, too."""
    path = pages(tmp_path)
    list(uploads(url).of_directory(tmp_path))
    put = [where.rpartition("/")[2] for method, where in server.seen if method == "PUT"]
    assert put == [index_path(path).name, path.name]


def test_a_file_that_somebody_has_locked_is_left_to_him(tmp_path: Path, url: str) -> None:
    """An indexer, or an uploader of another node; it may also be gone when its turn comes."""
    path = pages(tmp_path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert uploads(url).upload(path) is None
        assert list(uploads(url).of_directory(tmp_path)) == []
    path.rename(tmp_path / "elsewhere")
    assert uploads(url).upload(path) is None


def test_a_file_without_an_index_is_not_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes the index would find it locked, take the holder for one who makes it, and go away."""
    path = warc_file(tmp_path)
    held: list[Path] = []

    def noted(path: Path) -> AbstractContextManager[bool]:
        held.append(path)
        return locked_file(path)

    monkeypatch.setattr(uploads_module, "locked_file", noted)
    waiting = uploads(f"file://{tmp_path}/store")
    assert list(waiting.of_directory(tmp_path)) == []
    assert held == []
    index_file(path, ["cdxj"])
    (tmp_path / "store").mkdir()
    assert [done.path for done in waiting.of_directory(tmp_path)] == held == [path]


def test_at_the_end_indexes_are_waited_for(tmp_path: Path, url: str) -> None:
    """The last file of a crawl gets its index while the process that uploads it runs already."""
    path = warc_file(tmp_path)
    process = started(tmp_path, url, "--wait", str(LONG_S))
    index_file(path, ["cdxj"])
    status, told = ended(process)
    assert (status, [line["path"] for line in told]) == (0, [str(path)])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fault", ["500", "cut"])
def test_a_store_that_refuses_or_loses_bytes_has_no_file_and_takes_none_away(
    tmp_path: Path, url: str, server: FaultyS3, fault: str
) -> None:
    """What it has is compared before anything is removed here, and what is not whole is removed there."""
    path = pages(tmp_path)
    expected = by_name(path, index_path(path))
    server.become(fault)
    with pytest.raises(TransientStoreError, match=r"failed|does not have the bytes of .*cdxj"):
        list(uploads(url).of_directory(tmp_path))
    server.become("")
    assert in_store(url) == {}
    assert by_name(*tmp_path.iterdir()) == expected
    list(uploads(url).of_directory(tmp_path))
    assert in_store(url) == expected


def test_a_store_that_hangs_ends_the_process_and_nothing_is_lost(tmp_path: Path, url: str, server: FaultyS3) -> None:
    """It says so, with a status of its own; the next process finds everything."""
    path = pages(tmp_path)
    expected = by_name(path, index_path(path))
    server.become("hang")
    for stall_s in (3, 30, 300):  # a busy machine may take longer than the shortest to come to the first request
        status, told = ended(started(tmp_path, url, "--stall", str(stall_s)))
        assert status == 2
        if told[0]["at"]:
            break
    silence = f"nothing has moved for {stall_s} s: {url}, or the disk, does not answer"
    assert told == [{"error": silence, "at": path.name, "refused": []}]
    assert by_name(*tmp_path.iterdir()) == expected
    server.become("")
    assert ended(started(tmp_path, url))[0] == 0
    assert in_store(url) == expected


@pytest.mark.parametrize(
    "request_number",
    [
        pytest.param(number, marks=pytest.mark.long("requests between those of other rows") if number % 6 else ())
        for number in range(12)
    ],
)
def test_a_process_killed_at_any_request_leaves_what_the_next_one_moves(
    tmp_path: Path, url: str, server: FaultyS3, request_number: int
) -> None:
    """Before, between and after uploads: each file is whole in one place at least, and under one name in the end."""
    path = pages(tmp_path)
    expected = by_name(path, index_path(path))
    process: list[subprocess.Popen[bytes]] = []

    def kill_at(method: str, where: str) -> None:
        if len(server.seen) == request_number + 1:
            os.kill(process[0].pid, signal.SIGKILL)

    with server.paused():
        process.append(started(tmp_path, url))
        server.on_request = kill_at
    status, _ = ended(process[0])
    server.on_request = None
    server.wait_until_idle()  # a file that was sent whole may be there only now
    assert status in (-signal.SIGKILL, 0)
    there, here = in_store(url), by_name(*tmp_path.iterdir())
    assert there | here == expected
    assert there.items() <= expected.items(), "no half file is to be seen"
    if status:
        done = list(uploads(url).of_directory(tmp_path))
        assert [(each.path, each.was_there) for each in done] == [(path, path.name in there)]
    else:
        assert request_number >= 6, "an earlier one would have been reached"
    assert in_store(url) == expected
    assert not list(tmp_path.iterdir())


def test_killed_between_upload_and_removal(tmp_path: Path, url: str, server: FaultyS3) -> None:
    """The store has the file already: the next process compares, sends nothing again, and removes it here."""
    path = pages(tmp_path)
    expected = by_name(path, index_path(path))
    process: list[subprocess.Popen[bytes]] = []
    is_put: list[str] = []

    def kill_after_last_put(method: str, where: str) -> None:
        if method == "PUT" and where.endswith(".warc.gz"):
            is_put.append(where)
        elif is_put:
            os.kill(process[0].pid, signal.SIGKILL)

    with server.paused():
        process.append(started(tmp_path, url))
        server.on_request = kill_after_last_put
    assert ended(process[0])[0] == -signal.SIGKILL
    server.on_request = None
    server.wait_until_idle()
    assert in_store(url) == by_name(*tmp_path.iterdir()) == expected
    server.seen.clear()
    status, told = ended(started(tmp_path, url))
    assert (status, [line["was_there"] for line in told]) == (0, [True])
    assert [method for method, _ in server.seen if method != "HEAD"] == []
    assert in_store(url) == expected
    assert not list(tmp_path.iterdir())


def test_another_file_of_the_name_is_kept_and_so_is_ours(tmp_path: Path, url: str) -> None:
    """It is told what to do, once; other files move on. An index that was made anew is replaced."""
    taken, free = pages(tmp_path), pages(tmp_path, URLS[:3])
    store = StoredFiles(url, "S")
    (tmp_path / "other").write_bytes(b"pages of somebody else")
    for name in (taken.name, index_path(free).name):
        store.put(name, tmp_path / "other")
    first, second = uploads(url).of_directory(tmp_path)
    assert first == UploadResult(taken, first.bytes, was_there=True, problem=first.problem)
    assert first.problem.startswith(f"{taken} stays here: {url} has another file of this name")
    assert (second.path, second.problem) == (free, "")
    assert in_store(url)[taken.name] == b"pages of somebody else"
    assert taken.exists()
    assert index_path(taken).exists()


def test_an_unreadable_file_is_told_and_others_move(tmp_path: Path, url: str) -> None:
    """A bad block of one file does not keep the others."""
    bad = tmp_path / "a.warc.gz"
    bad.mkdir()
    (tmp_path / "a.cdxj").write_bytes(b"")
    path = pages(tmp_path)
    done = list(uploads(url).of_directory(tmp_path))
    assert [(each.path, bool(each.problem)) for each in done] == [(bad, True), (path, False)]
    assert "cannot be moved" in done[0].problem


def test_a_directory_as_a_store_must_be_there(tmp_path: Path) -> None:
    """It may be where nothing is mounted; once it is, files move, with their permissions."""
    (tmp_path / "warc").mkdir()
    path = pages(tmp_path / "warc")
    path.chmod(0o640)
    expected = by_name(path, index_path(path))
    url = f"file://{tmp_path}/mount"
    with pytest.raises(TransientStoreError, match="mount it"):
        list(uploads(url).of_directory(tmp_path / "warc"))
    (tmp_path / "mount").mkdir()
    (tmp_path / "mount" / f".{path.name}.tmp-1-2").write_bytes(b"half of it, by a process that was killed")
    list(uploads(url).of_directory(tmp_path / "warc"))
    assert by_name(*(tmp_path / "mount").iterdir()) == expected
    assert {oct(each.stat().st_mode)[-3:] for each in (tmp_path / "mount").glob("*.warc.gz")} == {"640"}


@pytest.mark.parametrize("is_link_to", ["directory", "file", "index"])
def test_a_store_that_has_the_very_file_takes_it_from_nobody(tmp_path: Path, is_link_to: str) -> None:
    """By a link that was made after the start: the file would be compared with itself, and removed."""
    (tmp_path / "warc").mkdir()
    path = pages(tmp_path / "warc")
    expected = by_name(path, index_path(path))
    store = tmp_path / "store"
    if is_link_to == "directory":
        store.symlink_to(path.parent)
    else:
        store.mkdir()
        linked = path if is_link_to == "file" else index_path(path)
        (store / linked.name).symlink_to(linked)
    [done] = uploads(f"file://{store}").of_directory(path.parent)
    assert "has this very file, by a link or mount, and no copy" in done.problem
    assert by_name(*path.parent.iterdir()) == expected


def test_a_file_written_anew_after_its_upload_is_told_with_what_to_do(tmp_path: Path) -> None:
    """A process was killed before it removed it here, then it was compacted: with the older one gone it moves."""
    (tmp_path / "warc").mkdir()
    (tmp_path / "store").mkdir()
    path = pages(tmp_path / "warc")
    older = tmp_path / "store" / path.name
    older.write_bytes(path.read_bytes() + b"what compacting saved")
    expected = by_name(path, index_path(path))
    url = f"file://{tmp_path}/store"
    [done] = uploads(url).of_directory(path.parent)
    assert "if this one was compacted or repaired after that was uploaded, remove the older one there" in done.problem
    older.unlink()
    list(uploads(url).of_directory(path.parent))
    assert by_name(*(tmp_path / "store").iterdir()) == expected


@pytest.mark.parametrize("refused", [0, 1, 2])
def test_a_file_that_the_store_always_refuses_keeps_no_others(tmp_path: Path, refused: int) -> None:
    """It is told by its name in the end, and stays; whichever it is, the others move."""
    (tmp_path / "warc").mkdir()
    (tmp_path / "store").mkdir()
    paths = [pages(tmp_path / "warc", URLS[: 3 + number]) for number in range(3)]
    (tmp_path / "store" / paths[refused].name).mkdir()
    done: list[Path] = []
    moving = uploads(f"file://{tmp_path}/store").of_directory(tmp_path / "warc")
    with pytest.raises(TransientStoreError, match=f"failed at {paths[refused].name}"):
        done.extend(each.path for each in moving)
    assert done == [path for path in paths if path != paths[refused]]
    assert [path for path in paths if path.exists()] == [paths[refused]]


def test_a_store_that_takes_nothing_is_asked_twice(tmp_path: Path, url: str, server: FaultyS3) -> None:
    """Not for each of many files: the second one that is refused ends it."""
    paths = [pages(tmp_path, URLS[: 3 + number]) for number in range(4)]
    server.become("500")
    with pytest.raises(TransientStoreError):
        list(uploads(url).of_directory(tmp_path))
    asked = {where for _, where in server.seen}
    assert len([path for path in paths if any(path.name in where for where in asked)]) == 2
    assert all(path.exists() for path in paths)


def test_whoever_begins_behind_files_that_the_store_refuses_moves_the_others(tmp_path: Path) -> None:
    """Two side by side end a process, which says at which; with more refusals allowed it gets to the others itself."""
    (tmp_path / "warc").mkdir()
    (tmp_path / "store").mkdir()
    paths = [pages(tmp_path / "warc", URLS[: 1 + number]) for number in range(5)]
    for path in paths[:2]:
        (tmp_path / "store" / path.name).mkdir()
    url, moved = f"file://{tmp_path}/store", []
    status, told = ended(started(tmp_path / "warc", url))
    assert (status, [line["at"] for line in told]) == (1, [paths[1].name])
    status, told = ended(started(tmp_path / "warc", url, f"--after={paths[1].name}"))
    moved = [line["path"] for line in told if "path" in line]
    assert (status, moved, told[-1]["at"]) == (1, list(map(str, paths[2:])), paths[1].name)
    more = pages(tmp_path / "warc", URLS[:2])
    status, told = ended(started(tmp_path / "warc", url, "--refusals", "3"))
    assert (status, told[0]["path"]) == (1, str(more))
    assert all(path.exists() for path in paths[:2])
