"""`scrapy frontier warc compact`: bodies stored twice are dropped, and no page is lost, whenever it is killed."""

from __future__ import annotations

import fcntl
import random
import signal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from bigcrawl.commands.pages import compact as compact_module
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_index.index_files import index_file, index_path, unindexed_files
from bigcrawl.warc import rewriting
from bigcrawl.warc.files import OsFiles, locked_file
from bigcrawl.warc.origins import RecentOrigins
from bigcrawl.warc.records import new_record_id
from bigcrawl.warc.segments import WarcWriter
from tests.support.running import warm
from tests.support.sha1_collision import FIRST, SECOND
from tests.support.sizes import examples
from tests.unit.commands.pages.test_warc import asked, data_of
from tests.unit.page_index.reference import reference_lines
from tests.unit.warc.reading import exchange, read_checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BODIES = [random.Random(number).randbytes(3_000 + number) for number in range(4)]


def node(directory: Path, name: str, pages: Sequence[tuple[int, bytes]], *, refers: bool = False) -> Path:
    """The file of a node with pages of these numbers and bodies, a second apart; it may know its own copies."""
    writer = WarcWriter(directory, "c", name, origins=RecentOrigins(100 if refers else 0))
    for number, body in pages:
        date_ms = 1_700_000_000_000 + number * 1000
        notes = {"depth": str(number)}
        writer.write(exchange(number, body, date_ms=date_ms, record_id=new_record_id(), notes=notes))
    writer.close()
    (path,) = directory.glob(f"*-{name}.warc.gz")
    index_file(path, ["cdxj"])
    return path


def payloads(directory: Path) -> dict[str, bytes]:
    """The body of each page: its own, or that of the one record that it refers to, which must have one."""
    bodies: dict[str, bytes] = {}
    references: dict[str, tuple[str, str, str]] = {}
    told: dict[str, tuple[str, str, bytes]] = {}
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                header = record.rec_headers.get_header
                if record.rec_type == "response":
                    bodies[header("WARC-Target-URI")] = body = record.raw_stream.read()
                    told[header("WARC-Record-ID")] = (header("WARC-Target-URI"), header("WARC-Date"), body)
                elif record.rec_type == "revisit":
                    keys = ("WARC-Refers-To", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date")
                    references[header("WARC-Target-URI")] = tuple(map(header, keys))
    for url, (record_id, target, date) in references.items():
        assert url not in bodies
        assert told[record_id][:2] == (target, date)
        bodies[url] = told[record_id][2]
    return bodies


def kinds_of(path: Path) -> list[str]:
    return [record.type for record in read_checked(path) if record.type in ("response", "revisit")]


def joined(directory: Path) -> dict[str, bytes]:
    """The files of three nodes that stored the same bodies; one of them knew its own copies."""
    first = [(number, BODIES[number % 3]) for number in range(6)]
    second = [(10 + number, BODIES[number % 2]) for number in range(4)]
    third = [(20, BODIES[3]), (21, BODIES[0]), (22, b"short"), (23, b"short")]
    node(directory, "a", first)
    node(directory, "b", second, refers=True)
    node(directory, "c", third)
    return {f"http://a.example/{number}": body for number, body in [*first, *second, *third]}


def test_each_body_is_stored_once_and_each_page_has_it(tmp_path: Path) -> None:
    """The first capture keeps it; records and indexes are as other tools want them; a second call does nothing."""
    expected = joined(tmp_path)
    assert payloads(tmp_path) == expected
    size = sum(path.stat().st_size for path in tmp_path.glob("*.warc.gz"))
    ids = {record.headers["WARC-Record-ID"] for path in tmp_path.glob("*.gz") for record in read_checked(path)}
    told = data_of(tmp_path, "compact")
    assert told["problems"] == []
    assert (told["files"], told["written"], told["copies"], told["redirected"]) == (3, 3, 3 + 2 + 1, 2)
    assert payloads(tmp_path) == expected
    paths = sorted(tmp_path.glob("*.warc.gz"))
    assert [kinds_of(path) for path in paths] == [
        ["response"] * 3 + ["revisit"] * 3,
        ["revisit"] * 4,
        ["response", "revisit", "response", "response"],
    ]
    assert told["saved_bytes"] == size - sum(path.stat().st_size for path in paths) > 6 * 2_000
    assert {record.headers["WARC-Record-ID"] for path in paths for record in read_checked(path)} == ids
    for path in paths:
        lines = index_path(path).read_bytes().splitlines()
        assert [line.split(b" ", 2)[:2] for line in lines] == [[k, s.encode()] for k, s, _ in reference_lines(path)]
    assert asked(tmp_path, "verify").status == 0
    to = tmp_path / "page"
    asked(tmp_path, "extract", "http://a.example/21", "--to", str(to))
    assert to.read_bytes() == BODIES[0]
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in paths}
    again = data_of(tmp_path, "compact")
    assert (again["written"], again["copies"], again["redirected"], again["saved_bytes"]) == (0, 0, 0, 0)
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in paths} == before


def test_what_is_not_changed_stays_byte_for_byte(tmp_path: Path) -> None:
    """Requests, notes, and responses that keep their body."""
    joined(tmp_path)
    before = {r.headers["WARC-Record-ID"]: r for path in tmp_path.glob("*.gz") for r in read_checked(path)}
    data_of(tmp_path, "compact")
    for path in tmp_path.glob("*.gz"):
        for record in read_checked(path):
            old = before[record.headers["WARC-Record-ID"]]
            if record.type != "revisit":
                assert record == old
            else:
                assert record.http_head == old.http_head
                kept = ("WARC-Target-URI", "WARC-Date", "WARC-IP-Address", "WARC-Payload-Digest", "WARC-Warcinfo-ID")
                assert {name: record.headers[name] for name in kept} == {name: old.headers[name] for name in kept}


def test_a_file_that_is_written_locked_or_damaged_is_not_touched(tmp_path: Path) -> None:
    """No body is dropped for one in a damaged file; the others are compacted, and the status tells."""
    a = node(tmp_path, "a", [(1, BODIES[0]), (2, BODIES[1])])
    b = node(tmp_path, "b", [(11, BODIES[0])])
    c = node(tmp_path, "c", [(21, BODIES[0])])
    data = bytearray(a.read_bytes())
    data[len(data) // 2] ^= 0xFF
    a.write_bytes(data)
    running = tmp_path / "running.warc.gz.open"
    running.write_bytes(b.read_bytes())
    with c.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = asked(tmp_path, "compact")
    assert found.status == 1
    assert f"{a}: " in found.text
    assert f"{c}: another process is at work on it" in found.text
    assert (a.read_bytes(), kinds_of(b), kinds_of(c)) == (bytes(data), ["response"], ["response"])
    assert running.read_bytes() == b.read_bytes()
    assert asked(tmp_path, "compact", str(b), str(c)).data["copies"] == 1
    assert (kinds_of(b), kinds_of(c)) == (["response"], ["revisit"])


def test_two_calls_at_once_are_one_too_many(tmp_path: Path) -> None:
    """The second says so; what a killed one left is removed."""
    joined(tmp_path)
    with compact_module._working_directory(tmp_path) as room:
        (room / "left").write_bytes(b"by a killed one")
        with pytest.raises(ConfigError, match="another scrapy frontier warc compact is running"):
            asked(tmp_path, "compact")
    (room / "left").write_bytes(b"by a killed one")
    asked(tmp_path, "compact")
    assert list(room.iterdir()) == []


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and the next call does what is left."""
    expected = joined(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.glob("*.*")}

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(OsFiles, "sync", refuse)
        with pytest.raises(TransientStoreError, match="No space left on device"):
            asked(tmp_path, "compact")
    assert {path: path.read_bytes() for path in tmp_path.glob("*.*") if path.is_file()} == files
    assert data_of(tmp_path, "compact")["copies"] == 6
    assert payloads(tmp_path) == expected


def test_new_file_is_nobody_elses_until_its_indexes_have_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An uploader that took it with some of them would leave the others behind."""
    joined(tmp_path)
    for path in tmp_path.glob("*.warc.gz"):
        index_file(path, ["cdxj"])
    rename, found = OsFiles.rename, []

    def rename_and_look(files: OsFiles, source: Path, target: Path) -> None:
        rename(files, source, target)
        if source.parent.name == ".compacting" and target.parent == tmp_path:
            with locked_file(target.with_name(target.name.split(".")[0] + ".warc.gz")) as is_ours:
                found.append(is_ours)

    monkeypatch.setattr(OsFiles, "rename", rename_and_look)
    assert data_of(tmp_path, "compact")["written"] == 3
    assert len(found) >= 3 * 2
    assert not any(found)


def test_bodies_of_one_sha1_that_differ_stay(tmp_path: Path) -> None:
    """An enemy publishes them; each page keeps its own bytes, and copies of other bodies go."""
    expected = joined(tmp_path)
    node(tmp_path, "d", [(30, FIRST), (31, SECOND)])
    assert data_of(tmp_path, "compact")["copies"] == 6, "those of the other bodies"
    assert payloads(tmp_path) == {**expected, "http://a.example/30": FIRST, "http://a.example/31": SECOND}


def test_reference_to_a_body_elsewhere_is_not_led_to_another_body_of_its_sha1(tmp_path: Path) -> None:
    """The file with its body was uploaded, for instance; the record keeps the name of it."""
    (tmp_path / "elsewhere").mkdir()
    node(tmp_path, "a", [(1, FIRST), (2, FIRST)])
    b = node(tmp_path, "b", [(3, SECOND)])
    c = node(tmp_path, "c", [(4, SECOND)])
    assert data_of(tmp_path, "compact", str(b), str(c))["copies"] == 1
    b.rename(tmp_path / "elsewhere" / b.name)
    told = data_of(tmp_path, "compact")
    assert (told["copies"], told["redirected"]) == (1, 0)
    (tmp_path / "elsewhere" / b.name).rename(b)
    assert payloads(tmp_path)["http://a.example/4"] == SECOND


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=[pytest.mark.fault] if call % 5 else []) for call in range(40)]
)
def test_killed_at_any_point_it_loses_nothing_and_the_next_call_ends_it(tmp_path: Path, call: int) -> None:
    """Each page can be read at any time; at worst an index is missing, which is made again."""
    warc = tmp_path / "warc"
    warc.mkdir()
    expected = joined(warc)
    script = ["tests.unit.commands.pages.kill_compact", str(warc), str(call)]
    status = warm.run(script).returncode
    assert status in (-signal.SIGKILL, 0)
    assert payloads(warc) == expected
    for path in warc.glob("*.warc.gz"):
        read_checked(path)
        if index_path(path).exists():
            keys = [line.split(b" ", 2)[0] for line in index_path(path).read_bytes().splitlines()]
            assert keys == [key for key, _, _ in reference_lines(path)]
    asked(warc, "compact")
    for path in unindexed_files(warc, ["cdxj"]):
        index_file(path, ["cdxj"])
    assert payloads(warc) == expected
    assert sum(kinds_of(path).count("response") for path in warc.glob("*.warc.gz")) == 6
    assert asked(warc, "verify").status == 0
    assert list((warc / ".compacting").iterdir()) == []


def test_heads_of_any_length_that_a_crawl_takes_are_kept(tmp_path: Path) -> None:
    """A header of 300 KB is the longest that BIGCRAWL_HEADER_BYTES_MAX allows; a longer one keeps its body."""
    writer = WarcWriter(tmp_path, "c", "a")
    for number, size in enumerate((10, 60_000, 300_000)):
        headers = [(b"X-Long", b"x" * size)]
        writer.write(exchange(number, BODIES[0], response_headers=headers, date_ms=1_700_000_000_000 + number))
    writer.close()
    told = data_of(tmp_path, "compact")
    assert told["problems"] == []
    assert payloads(tmp_path) == {f"http://a.example/{number}": BODIES[0] for number in range(3)}
    assert rewriting._HEADS_BYTES_MAX > 2 * 300_000


def test_files_that_join_later_change_what_is_referred_to(tmp_path: Path) -> None:
    """Copies that were found first refer to a record that is a copy then; in the end they refer to the earliest."""
    expected = joined(tmp_path)
    first, *others = sorted(tmp_path.glob("*.warc.gz"))
    told = data_of(tmp_path, "compact", *map(str, others))
    assert (told["copies"], told["redirected"]) == (1, 0)
    assert payloads(tmp_path) == expected
    told = data_of(tmp_path, "compact")
    assert (told["copies"], told["redirected"]) == (3 + 2, 2 + 1)
    assert payloads(tmp_path) == expected
    assert sum(kinds_of(path).count("response") for path in (first, *others)) == 6
    assert data_of(tmp_path, "compact")["written"] == 0


@pytest.mark.parametrize("end", [".warc.gz", ".warc.gz.open"])
def test_body_stays_to_which_a_file_refers_that_is_not_named(tmp_path: Path, end: str) -> None:
    """Also one that is being written; when all files are given, the body goes."""
    a, b = node(tmp_path, "a", [(1, BODIES[0])]), node(tmp_path, "b", [(2, BODIES[0]), (3, BODIES[1])])
    assert data_of(tmp_path, "compact")["copies"] == 1
    expected = payloads(tmp_path)
    z = node(tmp_path, "z", [(0, BODIES[0])])
    other = b.rename(tmp_path / f"b{end}")
    told = data_of(tmp_path, "compact", str(a), str(z))
    assert (told["problems"], told["copies"], kinds_of(a)) == ([], 0, ["response"])
    other.rename(b)
    assert payloads(tmp_path) == {**expected, "http://a.example/0": BODIES[0]}
    told = data_of(tmp_path, "compact")
    assert (told["redirected"], told["copies"], kinds_of(a)) == (1, 1, ["revisit"])
    assert payloads(tmp_path) == {**expected, "http://a.example/0": BODIES[0]}


def test_body_stays_to_which_a_damaged_file_refers(tmp_path: Path) -> None:
    """What comes before its damage can be read."""
    a, b = node(tmp_path, "a", [(1, BODIES[0])]), node(tmp_path, "b", [(2, BODIES[0]), (3, BODIES[1])])
    assert data_of(tmp_path, "compact")["copies"] == 1
    node(tmp_path, "z", [(0, BODIES[0])])
    b.write_bytes(b.read_bytes()[:-10])
    found = asked(tmp_path, "compact")
    assert (found.status, found.data["copies"], kinds_of(a)) == (1, 0, ["response"])
    assert f"{b}: " in found.text


@settings(max_examples=examples(20), deadline=None)
@given(
    nodes=st.lists(
        st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.booleans(), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_is_joined_in_whatever_order_each_page_keeps_its_body(
    nodes: list[tuple[list[int], bool, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nodes that know their own copies and such that do not, joined one by one, with and without a call in between."""
    directory = tmp_path_factory.mktemp("warc")
    expected: dict[str, bytes] = {}
    for number, (bodies, refers, compacts) in enumerate(nodes):
        pages = [(100 * number + place, BODIES[body]) for place, body in enumerate(bodies)]
        node(directory, "abcd"[number], pages, refers=refers)
        expected |= {f"http://a.example/{page}": body for page, body in pages}
        if compacts:
            assert data_of(directory, "compact")["problems"] == []
            assert payloads(directory) == expected
    assert data_of(directory, "compact")["problems"] == []
    assert payloads(directory) == expected
    responses = sum(kinds_of(path).count("response") for path in directory.glob("*.warc.gz"))
    assert responses == len({body for bodies, _, _ in nodes for body in bodies})
    assert data_of(directory, "compact")["written"] == 0
