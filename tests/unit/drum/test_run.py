from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.format import RunHeader, run_bytes
from bigcrawl.drum.run import RunReader, write_run
from bigcrawl.exceptions import ContractError, CorruptionError

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.drum.run import RunInfo

FILES = DiskFiles()


def write(path: Path, keys: KeyArray, chunks: int = 1) -> RunInfo:
    header = RunHeader(len(keys), int(keys[0]), int(keys[-1]))
    return write_run(FILES, path, np.array_split(keys, chunks), header)


@pytest.mark.parametrize("count", [1, 511, 512, 513, 1024, 3000])
@pytest.mark.parametrize("chunks", [1, 7])
def test_a_run_reads_back_whole(tmp_path: Path, count: int, chunks: int) -> None:
    """However its keys came, a run has the exact length of its format and gives them back in order."""
    keys = np.arange(count, dtype=np.uint64) * np.uint64(2**50) + np.uint64(3)
    info = write(tmp_path / "run-1", keys, chunks)
    assert info == ("run-1", count, 3, int(keys[-1]))
    assert (tmp_path / "run-1").stat().st_size == run_bytes(count)
    reader = RunReader(FILES, tmp_path, info)
    assert np.array_equal(np.concatenate(list(reader.spans())), keys)
    assert reader.contains(keys).all()
    assert not reader.contains(keys + np.uint64(1)).any()


def test_keys_out_of_order_are_a_bug(tmp_path: Path) -> None:
    """A run is never written from keys that do not ascend, or that are fewer than its header says."""
    for keys in ([1, 3, 2], [1, 1]):
        with pytest.raises(ContractError):
            write(tmp_path / "run-1", np.array(keys, dtype=np.uint64))
    with pytest.raises(ContractError):
        write_run(FILES, tmp_path / "run-1", [np.array([1], dtype=np.uint64)], RunHeader(2, 1, 1))


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    """Whichever byte of a run is flipped, reading it whole says so, naming the file and a place in it."""
    info = write(tmp_path / "run-1", np.arange(0, 1200, 2, dtype=np.uint64))
    path = tmp_path / "run-1"
    sound = path.read_bytes()
    for place in [*range(48), *range(48, len(sound), 97), *range(len(sound) - 12, len(sound))]:
        if 44 <= place < 48:
            continue  # reserved, read by nobody
        damaged = bytearray(sound)
        damaged[place] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(CorruptionError) as caught:
            RunReader(FILES, tmp_path, info).verify()
        assert caught.value.path == str(path)
        assert 0 <= caught.value.offset <= len(sound)


def test_a_search_is_never_misled_by_damage(tmp_path: Path) -> None:
    """In a run too large to be read whole, a search answers rightly or reports damage, wherever it lies."""
    held = np.arange(20_480, dtype=np.uint64) * np.uint64(2)
    info = write(tmp_path / "run-1", held)
    path = tmp_path / "run-1"
    sound = path.read_bytes()
    wanted = np.array([2, 777, 20_478, 33_334, 40_958], dtype=np.uint64)
    found = 0
    last_of_a_block, last_of_all = 48 + 10_239 * 8, 48 + 20_479 * 8
    ends = [start + byte for start in (last_of_a_block, last_of_all) for byte in range(8)]
    for place in [*range(48, len(sound), 1009), *ends]:
        damaged = bytearray(sound)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert RunReader(FILES, tmp_path, info).contains(wanted).tolist() == [
                True,
                False,
                True,
                True,
                True,
            ]
        except CorruptionError:
            found += 1
    assert found


def test_another_length_or_another_run_is_refused(tmp_path: Path) -> None:
    """A run that was cut, that grew, or that is not the one the manifest names, is damage."""
    path = tmp_path / "run-1"
    info = write(path, np.arange(10, dtype=np.uint64))
    sound = path.read_bytes()
    for data in (b"", sound[:-1], sound + b"\0", sound[:20]):
        path.write_bytes(data)
        with pytest.raises(CorruptionError):
            RunReader(FILES, tmp_path, info)
    path.write_bytes(sound)
    with pytest.raises(CorruptionError):
        RunReader(FILES, tmp_path, info._replace(last=8))


def test_a_run_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    """What a later version wrote is not guessed at."""
    path = tmp_path / "run-1"
    info = write(path, np.arange(10, dtype=np.uint64))
    data = bytearray(path.read_bytes())
    data[8] = 2
    path.write_bytes(data)
    with pytest.raises(CorruptionError, match="format version 1, found 2"):
        RunReader(FILES, tmp_path, info)
