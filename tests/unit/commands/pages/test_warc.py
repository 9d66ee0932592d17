"""`scrapy frontier warc`: files are checked and indexed, pages are got out, and what is wrong is told with a remedy."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.pages import upload
from bigcrawl.commands.running import parse_action, run_action
from bigcrawl.config import pages as config_pages
from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, ConfigError, CorruptionError, TransientStoreError
from bigcrawl.page_index.cdxj import read_line
from bigcrawl.page_index.index_files import index_file, index_path
from bigcrawl.warc.origins import RecentOrigins
from bigcrawl.warc.records import new_record_id
from bigcrawl.warc.segments import WarcWriter
from tests.support.running import warm
from tests.support.servers.s3_server import FaultyS3, new_bucket
from tests.support.sha1_collision import FIRST, SECOND
from tests.unit.page_index.test_index_files import URLS, warc_file
from tests.unit.page_store.test_uploads import in_store
from tests.unit.warc.reading import exchange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.commands.result import Result


def asked(directory: Path, *words: str, **settings: str) -> Result:
    """What `scrapy frontier warc` returns for a directory."""
    here = {"BIGCRAWL_WARC_DIR": str(directory), "BIGCRAWL_STATE_DIR": str(directory / "no state")}
    config = read_config({**here, **settings})
    return run_action(config, "warc", parse_action("warc", list(words)))


def data_of(directory: Path, *words: str) -> dict[str, Any]:
    return asked(directory, *words).data


def test_sound_files_are_said_to_be_sound(tmp_path: Path) -> None:
    """With the number of records; files without an index are named, and are no damage."""
    path = warc_file(tmp_path)
    found = asked(tmp_path, "verify")
    assert found.status == 0
    assert found.data == {
        "files": 1,
        "records": 1 + 2 * len(URLS) + 3,
        "damaged": [],
        "unreadable": [],
        "outdated": [],
        "unindexed": [str(path)],
    }
    assert "scrapy frontier warc index" in found.text
    assert data_of(tmp_path, "index") == {"files": 1, "pages": len(URLS), "damaged": [], "unreadable": [], "busy": []}
    assert data_of(tmp_path, "verify", str(path))["unindexed"] == []


@pytest.mark.parametrize("what", ["cut", "flipped"])
def test_damage_is_told_with_file_byte_and_remedy(tmp_path: Path, what: str) -> None:
    """A file that is cut, and one whose bytes have changed; sound files beside it are counted, the status is 1."""
    path, other = warc_file(tmp_path), warc_file(tmp_path, URLS[:1])
    data = bytearray(path.read_bytes())
    data[-40] ^= 0xFF
    path.write_bytes(data[:-10] if what == "cut" else data)
    for verb in ("verify", "index"):
        found = asked(tmp_path, verb)
        assert found.status == 1
        assert len(found.data["damaged"]) == 1
        assert f"{path}: " in found.text
        assert "scrapy frontier warc repair" in found.text
    assert index_path(other).exists()


@pytest.mark.parametrize("body", [b"", b"a page", b"\r\n\r\n", bytes(range(256)) * 9000])
def test_a_page_comes_out_as_the_server_sent_it(tmp_path: Path, body: bytes) -> None:
    """By any spelling of its URL; its head is shown, its body written byte for byte."""
    writer = WarcWriter(tmp_path, "c", "n")
    for number in range(3):
        headers = [(b"Content-Type", b"text/html"), (b"X-Number", b"%d" % number)]
        writer.write(exchange(number, body + b"%d" % number, response_headers=headers))
    writer.close()
    asked(tmp_path, "index")
    to = tmp_path / "page"
    found = asked(tmp_path, "extract", "http://a.example/1", "--to", str(to))
    assert to.read_bytes() == body + b"1"
    assert found.data["body_bytes"] == len(body) + 1
    assert found.data["head"] == ["HTTP/1.1 200 OK", "Content-Type: text/html", "X-Number: 1"]
    assert data_of(tmp_path, "extract", "https://www.a.example/2/")["url"] == "http://a.example/2"


def test_the_last_capture_until_a_time_is_shown(tmp_path: Path) -> None:
    """Of several, the last; with --at, the last until then; before the first there is none."""
    writer = WarcWriter(tmp_path, "c", "n")
    for year in (0, 1, 2):
        writer.write(exchange(1, b"%d" % year, date_ms=1_700_000_000_000 + year * 366 * 86_400_000))
    writer.close()
    asked(tmp_path, "index")
    at = [data_of(tmp_path, "extract", "http://a.example/1", *more)["date"][:4] for more in ((), ("--at", "2024"))]
    assert at == ["2025", "2024"]
    with pytest.raises(ConfigError, match="until 2022"):
        asked(tmp_path, "extract", "http://a.example/1", "--at", "2022")
    with pytest.raises(ConfigError, match="--at is 'yesterday'"):
        asked(tmp_path, "extract", "http://a.example/1", "--at", "yesterday")


def test_an_index_that_lies_reads_no_other_file(tmp_path: Path) -> None:
    """A path in it is taken for a file beside it; an offset where no record is, is damage and is told."""
    path = warc_file(tmp_path)
    index_file(path, ["cdxj"])
    lines = index_path(path).read_text().replace(path.name, f"../{tmp_path.name}/../../etc/{path.name}")
    index_path(path).write_text(lines)
    assert data_of(tmp_path, "extract", URLS[2])["file"] == str(path)
    path.write_bytes(b"x" + path.read_bytes())
    with pytest.raises(CorruptionError, match=str(path)):
        asked(tmp_path, "extract", URLS[2])
    path.unlink()
    with pytest.raises(TransientStoreError, match="cannot be read"):
        asked(tmp_path, "extract", URLS[2])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("purge",), "verify [FILE...]"),
        (("extract",), "one URL"),
        (("extract", "a.example"), "http"),
        (("extract", "http://a.example/"), "1 files have no index, which scrapy frontier warc index makes"),
        (("verify", "no.warc.gz"), "there is no file no.warc.gz"),
        (("index", __file__), "ends in .warc.gz"),
        (("upload",), "BIGCRAWL_WARC_STORE_URL is not set"),
        (("upload", "c.warc.gz"), "takes no file names"),
    ],
)
def test_wrong_words_are_answered_with_what_is_right(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """One line, and nothing is made."""
    warc_file(tmp_path)
    with pytest.raises(BigcrawlError) as refused:
        asked(tmp_path, *words)
    assert said in str(refused.value)
    assert not list(tmp_path.glob("*.cdxj"))


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    """With the setting that names it."""
    with pytest.raises(ConfigError, match="BIGCRAWL_WARC_DIR"):
        asked(tmp_path / "nowhere", "verify")


def test_complete_files_are_moved_to_the_store(tmp_path: Path) -> None:
    """What has no index is left and told; what is there already under its name makes the exit status 1."""
    here, store = tmp_path / "here", tmp_path / "store"
    here.mkdir()
    url = f"file://{store}"
    first, second = warc_file(here), warc_file(here, URLS[:2])
    index_file(first, ["cdxj"])
    with pytest.raises(TransientStoreError, match="mount it"):
        asked(here, "upload", BIGCRAWL_WARC_STORE_URL=url)
    store.mkdir()
    size = first.stat().st_size + index_path(first).stat().st_size
    found = asked(here, "upload", BIGCRAWL_WARC_STORE_URL=url)
    assert found.data == {"files": 1, "were_there": 0, "bytes": size, "problems": [], "left": 1}
    assert "scrapy frontier warc index" in found.text
    assert {path.name for path in store.iterdir()} == {first.name, index_path(first).name}
    with pytest.raises(ConfigError, match=f"files in {url} are not searched"):
        asked(here, "extract", URLS[0], BIGCRAWL_WARC_STORE_URL=url)
    index_file(second, ["cdxj"])
    (store / second.name).write_bytes(b"another")
    found = asked(here, "upload", BIGCRAWL_WARC_STORE_URL=url)
    assert found.status == 1
    assert "has another file of this name" in found.text
    assert second.exists()


@pytest.mark.long("a store that hangs: tests/unit/page_store/test_uploads.py")
def test_a_store_that_does_not_answer_holds_no_upload_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts the connection and is silent: the command says so after a while, and nothing is lost."""
    path = warc_file(tmp_path)
    index_file(path, ["cdxj"])
    kept = path.read_bytes()
    with FaultyS3() as server:
        url = f"{new_bucket(server.url, monkeypatch)}/pages"
        server.become("hang")
        with monkeypatch.context() as hasty:  # a busy machine may take longer for what moves
            hasty.setattr(upload, "STALL_S", 3.0)
            with pytest.raises(TransientStoreError, match=f"0 files were moved; nothing has moved for 3 s: {url}"):
                asked(tmp_path, "upload", BIGCRAWL_WARC_STORE_URL=url)
        assert path.read_bytes() == kept
        server.become("")
        assert asked(tmp_path, "upload", BIGCRAWL_WARC_STORE_URL=url).data["files"] == 1
    assert not path.exists()


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.long("another signal")),
        pytest.param(signal.SIGHUP, marks=pytest.mark.long("another signal")),
    ],
)
def test_a_signal_ends_an_upload_and_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """In the middle of a file, which is here still; the exit status says so, and another call moves all."""
    here = tmp_path / "here"
    here.mkdir()
    files = [warc_file(here), warc_file(here, URLS[:2])]
    for path in files:
        index_file(path, ["cdxj"])
    is_under_way, may_go_on = threading.Event(), threading.Event()

    def hold(method: str, path: str) -> None:
        if method == "PUT" and path.endswith(files[1].name):
            is_under_way.set()
            may_go_on.wait()

    with FaultyS3() as server, (tmp_path / "told").open("w+") as told:
        url = f"{new_bucket(server.url, monkeypatch)}/pages"
        server.on_request = hold
        command = [
            "bigcrawl",
            "warc",
            "upload",
            "-s",
            f"BIGCRAWL_WARC_DIR={here}",
            "-s",
            f"BIGCRAWL_WARC_STORE_URL={url}",
        ]
        process = warm.start(command, stdout=told, stderr=told)
        try:
            assert is_under_way.wait(300)
            assert list(processes_with(str(here)))
            process.send_signal(number)
            assert process.wait(300) == 128 + number
        finally:
            process.kill()
            may_go_on.set()
            server.on_request = None
        told.seek(0)
        assert f"ended by {number.name}: the other files are here" in told.read()
        assert not list(processes_with(str(here))), "nobody uploads any more"
        assert [path.exists() for path in files] == [False, True]
        assert asked(here, "upload", BIGCRAWL_WARC_STORE_URL=url).status == 0
        assert in_store(url).keys() == {path.name for file in files for path in (file, index_path(file))}


@pytest.mark.long("a signal that is ignored; one that is not ends an upload here")
def test_an_upload_under_nohup_outlives_the_end_of_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever ignores SIGHUP when the command begins wants it to go on."""
    index_file(warc_file(tmp_path), ["cdxj"])
    sent = threading.Event()

    def hang_up(method: str, path: str) -> None:
        if method == "PUT" and not sent.is_set():
            sent.set()
            os.kill(os.getpid(), signal.SIGHUP)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with FaultyS3() as server:
            url = f"{new_bucket(server.url, monkeypatch)}/pages"
            server.on_request = hang_up
            found = asked(tmp_path, "upload", BIGCRAWL_WARC_STORE_URL=url)
        assert sent.is_set()
        assert (found.status, found.data["files"]) == (0, 1)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def processes_with(word: str) -> Iterator[bytes]:
    """The command lines that have this word."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(word) in (words := path.read_bytes()).split(b"\0"):
                yield words


@pytest.mark.system
def test_parquet_is_made_when_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an option or by the setting; without pyarrow the message says what to install."""
    path = warc_file(tmp_path)
    assert "cdxj, parquet" in asked(tmp_path, "index", "--parquet").text
    assert index_path(path, "parquet").exists()
    index_path(path, "parquet").unlink()
    asked(tmp_path, "index", BIGCRAWL_WARC_INDEX="parquet")
    assert index_path(path, "parquet").exists()
    monkeypatch.setattr(config_pages, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'bigcrawl\[parquet\]'"):
        asked(tmp_path, "index", "--parquet")


@pytest.mark.parametrize("what", ["damaged", "of another page", "full", "missing"])
def test_a_page_that_cannot_be_got_out_leaves_the_file_that_was_there(tmp_path: Path, what: str) -> None:
    """It is replaced once the whole body is written; its name is never that of half a page."""
    directory, kept = tmp_path / "warc", tmp_path / "page"
    directory.mkdir()
    writer = WarcWriter(directory, "c", "n")
    for number in range(2):
        writer.write(exchange(number, os.urandom(700_000)))
    writer.close()
    (path,) = directory.glob("*.warc.gz")
    asked(directory, "index")
    kept.write_bytes(b"as it was")
    data, index = path.read_bytes(), index_path(path)
    if what == "damaged":
        path.write_bytes(data[:600_000] + bytes(100) + data[600_100:])
    elif what == "of another page":
        index.write_text(index.read_text().replace("/1 ", "/9 ").replace("a.example/1", "a.example/9"))
    elif what == "missing":
        path.unlink()
    if what == "full":
        command = [*EXTRACT, str(directory), str(kept)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_few_bytes)
        assert done.stdout.startswith("TransientStoreError"), done.stderr
    else:
        url = f"http://a.example/{9 if what == 'of another page' else 0}"
        with pytest.raises((CorruptionError, TransientStoreError)):
            asked(directory, "extract", url, "--to", str(kept))
    assert kept.read_bytes() == b"as it was"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["page", "warc"]


EXTRACT = [
    sys.executable,
    "-c",
    (
        "import sys; from pathlib import Path; from tests.unit.commands.pages.test_warc import asked\n"
        "try: asked(Path(sys.argv[1]), 'extract', 'http://a.example/0', '--to', sys.argv[2])\n"
        "except Exception as error: print(type(error).__name__, error)"
    ),
]


def _few_bytes() -> None:
    """Let no file of this process grow beyond 100 KB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_what_a_page_is_written_to_stays_what_it_is(tmp_path: Path) -> None:
    """A file keeps its permissions, a link leads where it led, and a pipe or device is written itself."""
    warc_file(tmp_path, URLS[2:3])
    asked(tmp_path, "index")
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    asked(tmp_path, "extract", URLS[2], "--to", str(link))
    assert link.is_symlink()
    assert target.read_bytes() == b"page 0"
    assert target.stat().st_mode & 0o777 == 0o640
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        asked(tmp_path, "extract", URLS[2], "--to", str(pipe))
        assert os.read(reader, 99) == b"page 0"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_copy_comes_out_with_the_body_of_its_original(tmp_path: Path) -> None:
    """Its own head is shown; and if the original is damaged, the file that was there stays."""
    writer, to = WarcWriter(tmp_path, "c", "n", origins=RecentOrigins(9)), tmp_path / "page"
    for number in range(2):
        writer.write(exchange(number, b"%0900d" % 7, record_id=new_record_id()))
    writer.close()
    asked(tmp_path, "index")
    found = data_of(tmp_path, "extract", "http://a.example/1", "--to", str(to))
    assert to.read_bytes() == b"%0900d" % 7
    assert found["body_bytes"] == 900
    (path,) = tmp_path.glob("*.warc.gz")
    data = bytearray(path.read_bytes())
    data[read_line(index_path(path).read_bytes().splitlines()[0]).offset + 300] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptionError):
        asked(tmp_path, "extract", "http://a.example/1", "--to", str(to))
    assert to.read_bytes() == b"%0900d" % 7


def test_a_copy_comes_out_with_its_own_body_of_two_with_one_sha1(tmp_path: Path) -> None:
    """Which of them its original had is known by the date."""
    writer, to = WarcWriter(tmp_path, "c", "n", origins=RecentOrigins(9)), tmp_path / "page"
    for seconds, body in enumerate((SECOND, FIRST, SECOND)):
        date_ms = 1_700_000_000_000 + seconds * 1000
        writer.write(exchange(1, body, record_id=new_record_id(), date_ms=date_ms))
    writer.write(exchange(2, FIRST, record_id=new_record_id()))
    writer.close()
    asked(tmp_path, "index")
    asked(tmp_path, "extract", "http://a.example/2", "--to", str(to))
    assert to.read_bytes() == FIRST
