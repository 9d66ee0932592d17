from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.format import BLOCK_BYTES, PREFIXES_MAX, TRAILER_BYTES, Records, best_suffix_bytes, prefixes_of
from bigcrawl.drum.run import SPAN_KEYS, RunBounds, RunReader, write_run
from bigcrawl.exceptions import ContractError, CorruptionError

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.drum.run import RunInfo

FILES = DiskFiles()
VALUE = np.dtype([("turn", "<u4"), ("used", "u1")])


def distinct(keys: KeyArray) -> KeyArray:
    """As np.unique, which makes a hash table of large arrays: that takes ten times as long."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])]


def spread(count: int, seed: int = 1) -> KeyArray:
    """So many keys or a few less, as hashes are spread."""
    return distinct(np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64))


def values_of(keys: KeyArray) -> ValueArray:
    values = np.zeros(len(keys), dtype=VALUE)
    values["turn"], values["used"] = keys, keys >> np.uint64(7)
    return values


def with_values(keys: KeyArray) -> Records:
    return Records(keys, values_of(keys))


def write(path: Path, records: Records, chunks: int = 1) -> RunInfo:
    keys, values = records
    cuts = np.array_split(np.arange(len(keys)), chunks)
    parts = [Records(keys[cut], values[cut] if values is not None else None) for cut in cuts]
    info = write_run(FILES, path, parts, RunBounds(len(keys), int(keys[0]), int(keys[-1])))
    assert info is not None
    return info


KEYS = {
    "one": np.array([2**64 - 1], dtype=np.uint64),
    "two at the ends": np.array([0, 2**64 - 1], dtype=np.uint64),
    "neighbours": np.arange(700, dtype=np.uint64) + np.uint64(2**63),
    "even": np.arange(3000, dtype=np.uint64) * np.uint64(2**50) + np.uint64(3),
    "clumps": np.concatenate([np.arange(900, dtype=np.uint64) + np.uint64(c) for c in (5, 2**33, 2**62, 2**64 - 900)]),
    "hashes": spread(5_000),
    "many": spread(SPAN_KEYS * 2 + 17),
    "one bucket of 256": spread(40_000) >> np.uint64(8),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("chunks", [1, 7])
@pytest.mark.parametrize("value", [None, VALUE])
def test_a_run_reads_back_whole(tmp_path: Path, name: str, chunks: int, value: np.dtype[Any] | None) -> None:
    """However its keys came and are spread, a run gives them back in order, and finds each and no other."""
    keys = KEYS[name]
    records = with_values(keys) if value is not None else Records(keys, None)
    info = write(tmp_path / "run-1", records, chunks)
    assert info == ("run-1", len(keys), int(keys[0]), int(keys[-1]), (tmp_path / "run-1").stat().st_size)
    reader = RunReader(FILES, tmp_path, info, value)
    read = list(reader.spans())
    assert np.array_equal(np.concatenate([span.keys for span in read]), keys)
    # By one, in arrays, and with all records in order; which, depends on how many there are of either.
    few, some = (keys[:: max(len(keys) // count, 1)][:count] for count in (20, 300))
    for wanted in (keys, some, few):
        found, values = reader.find(wanted)
        assert found.all()
        if values is not None:
            assert values.tolist() == values_of(wanted).tolist()
    for wanted in (keys, some, few):
        others = distinct(np.concatenate((wanted + np.uint64(1), wanted ^ np.uint64(1 << 40))))
        others = others[keys[np.searchsorted(keys, others) % len(keys)] != others]
        assert not reader.find(others)[0].any()
    values_read = [span.values for span in read if span.values is not None]
    if records.values is not None:
        assert np.array_equal(np.concatenate(values_read), records.values)
    reader.verify()


def test_suffixes_are_as_short_as_is_worth_it(tmp_path: Path) -> None:
    """Many keys share what they begin with: a key takes less than its 8 bytes the more of them there are."""
    assert [best_suffix_bytes(count, 2**64 - 1) for count in (1, 5_000, 10**6, 10**9)] == [8, 7, 6, 6]
    assert [best_suffix_bytes(count, 2**56 - 1) for count in (5_000, 10**6)] == [6, 5]
    assert all(prefixes_of(2**64 - 1, best_suffix_bytes(10**k, 2**64 - 1)) <= PREFIXES_MAX for k in range(13))
    keys = spread(1_000_000)
    assert write(tmp_path / "run-1", Records(keys, None)).length <= 6.1 * len(keys)


def test_a_prefix_that_very_many_keys_share_is_counted_wide(tmp_path: Path) -> None:
    """More than 255 and more than 65,535 keys of one prefix are found like others."""
    for count in (300, 70_000):
        keys = np.append(np.arange(count, dtype=np.uint64) + np.uint64(2**40), spread(20_000) | np.uint64(1 << 63))
        reader = RunReader(FILES, tmp_path, write(tmp_path / "run-1", Records(distinct(keys), None)))
        reader.verify()
        some = np.array([2**40 - 1, 2**40, 2**40 + count - 1, 2**40 + count], dtype=np.uint64)
        assert reader.find(some)[0].tolist() == [False, True, True, False]


def test_bytes_of_two_neighbours_make_no_key(tmp_path: Path) -> None:
    """What a search is for may stand across two records; only where one begins is it found."""
    twins = np.arange(256, dtype=np.uint64) * np.uint64(0x0101)
    keys = np.concatenate([twins + np.uint64(high << 16) for high in range(10)])
    reader = RunReader(FILES, tmp_path, write(tmp_path / "run-1", Records(keys, None)))
    assert reader._layout.suffix_bytes == 2
    across = np.array([0x0605, 0x0606, 0x90A09], dtype=np.uint64)
    assert reader.find(across)[0].tolist() == [False, True, False]


def test_keys_are_found_in_arrays_as_one_by_one(tmp_path: Path) -> None:
    """Whichever way a search goes, at both ends of a run, in prefixes of none, one and very many keys."""
    clumps = [np.arange(70_000, dtype=np.uint64) + np.uint64(at) for at in (1, 2**60, 2**64 - 70_000)]
    keys = distinct(np.concatenate([*clumps, spread(50_000)]))
    reader = RunReader(FILES, tmp_path, write(tmp_path / "run-1", with_values(keys)), VALUE)
    edges = [clump[[0, 1, -1]] for clump in clumps]
    beside = [edge + np.uint64(step) for edge in edges for step in (1, 5, 2**64 - 1)]
    wanted = distinct(np.concatenate([*edges, *beside, spread(90, 2), keys[::977]]))
    expected = np.isin(wanted, keys)
    assert 64 < len(wanted) < 400
    for part in (wanted, *np.array_split(wanted, 10)):
        found, values = reader.find(part)
        assert found.tolist() == np.isin(part, keys).tolist()
        assert values is not None
        assert values[found].tolist() == values_of(part[found]).tolist()
        assert not values[~found]["turn"].any()
    assert 0 < expected.sum() < len(wanted)


def test_keys_out_of_order_are_a_bug(tmp_path: Path) -> None:
    """A run is never written from keys that do not ascend, or that leave what was said of them."""

    def attempt(keys: list[int], bounds: RunBounds) -> None:
        write_run(FILES, tmp_path / "run-1", [Records(np.array(keys, dtype=np.uint64), None)], bounds)

    for keys in ([1, 3, 2], [1, 1]):
        with pytest.raises(ContractError):
            attempt(keys, RunBounds(3, 1, 3))
    for bounds in (RunBounds(1, 5, 6), RunBounds(2, 6, 6), RunBounds(2, 5, 5)):
        with pytest.raises(ContractError):
            attempt([5, 6], bounds)


def test_no_keys_make_no_run(tmp_path: Path) -> None:
    """Nothing is written when all chunks are empty."""
    empty = Records(np.empty(0, dtype=np.uint64), None)
    assert write_run(FILES, tmp_path / "run-1", [empty, empty], RunBounds(9, 0, 9)) is None
    assert list(tmp_path.iterdir()) == []


def is_located(directory: Path, info: RunInfo, value: np.dtype[Any] | None, place: int) -> bool:
    """Flip a byte of the run, and return whether reading it whole fails, with the place of what is damaged."""
    path = directory / info.name
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ (1 << place % 8)]))
    with pytest.raises(CorruptionError) as caught:
        RunReader(FILES, directory, info, value).verify()
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes([byte]))
    assert caught.value.path == str(path)
    # The place is that of the block, of the table or of the trailer that is damaged.
    offset = caught.value.offset
    return place - BLOCK_BYTES < offset <= place or info.length - TRAILER_BYTES <= offset <= info.length


@pytest.mark.parametrize("value", [None, VALUE])
@pytest.mark.parametrize("count", [1, 40, 400])
def test_every_damaged_byte_is_located(tmp_path: Path, value: np.dtype[Any] | None, count: int) -> None:
    """Whichever byte of a small run is flipped: records, directory, table or trailer."""
    keys = spread(count)
    info = write(tmp_path / "run-1", with_values(keys) if value is not None else Records(keys, None))
    assert [place for place in range(info.length) if not is_located(tmp_path, info, value, place)] == []


@pytest.mark.parametrize("value", [None, VALUE])
def test_damaged_bytes_of_a_large_run_are_found(tmp_path: Path, value: np.dtype[Any] | None) -> None:
    """Any byte, drawn at random, and all around where one part ends and the next begins."""
    keys = spread(200_000)
    info = write(tmp_path / "run-1", with_values(keys) if value is not None else Records(keys, None))
    layout = RunReader(FILES, tmp_path, info, value)._layout
    borders = [place + by for place in (layout.directory, layout.table) for by in range(-3, 4)]
    drawn = np.random.default_rng(5).integers(0, info.length, 60).tolist()
    places = [*borders, *drawn, *range(info.length - TRAILER_BYTES - 4, info.length)]
    assert [place for place in places if not is_located(tmp_path, info, value, place)] == []


@pytest.mark.parametrize("step", [1999, 269])
@pytest.mark.parametrize("value", [None, VALUE])
def test_a_search_is_never_misled_by_damage(tmp_path: Path, value: np.dtype[Any] | None, step: int) -> None:
    """In a run too large to be read whole, a search answers rightly or reports damage, wherever it lies."""
    keys = spread(20_000)
    info = write(tmp_path / "run-1", with_values(keys) if value is not None else Records(keys, None))
    path = tmp_path / "run-1"
    sound = path.read_bytes()
    wanted = distinct(np.concatenate((keys[::step], keys[::2999] + np.uint64(1))))
    answers = np.isin(wanted, keys).tolist()
    layout = RunReader(FILES, tmp_path, info, value)._layout
    found = 0
    for place in [*range(0, len(sound), 997), *range(layout.directory, layout.table, 41)]:
        damaged = bytearray(sound)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert RunReader(FILES, tmp_path, info, value).find(wanted)[0].tolist() == answers
        except CorruptionError:
            found += 1
    assert found


def test_another_length_or_another_run_is_refused(tmp_path: Path) -> None:
    """A run that was cut, that grew, or that is not the one the manifest names, is damage."""
    path = tmp_path / "run-1"
    for count in (10, 20_000):
        info = write(path, Records(spread(count), None))
        sound = path.read_bytes()
        for data in (b"", sound[:-1], sound + b"\0", sound[:20], sound[1:], sound[:5] + sound[6:]):
            path.write_bytes(data)
            with pytest.raises(CorruptionError):
                RunReader(FILES, tmp_path, info).verify()
        path.write_bytes(sound)
        with pytest.raises(CorruptionError):
            RunReader(FILES, tmp_path, info._replace(last=info.last - 1))
        with pytest.raises(CorruptionError):
            RunReader(FILES, tmp_path, info, VALUE)


def test_a_run_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    """What another version wrote is not guessed at."""
    path = tmp_path / "run-1"
    info = write(path, Records(np.arange(10, dtype=np.uint64), None))
    data = bytearray(path.read_bytes())
    data[-48] = 3
    path.write_bytes(data)
    with pytest.raises(CorruptionError, match="format version 2, found 3"):
        RunReader(FILES, tmp_path, info)
