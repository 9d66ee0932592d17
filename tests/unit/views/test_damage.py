"""`scrapy frontier verify`: damage is found and named, a sound crawl is said to be sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import Config, read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch
from bigcrawl.views.damage import damage_of
from tests.unit.stored.warc_files import page, stored

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return read_config({"BIGCRAWL_STATE_DIR": str(tmp_path), "BIGCRAWL_WARC_DIR": "", "BIGCRAWL_CRAWL": "c"})


def fill(config: Config) -> Path:
    """One partition with some URLs seen and waiting."""
    directory = config.crawl.crawl_dir / "p0003"
    partition = Partition.open(directory, 1, PartitionLimits())
    urls = [QueuedUrl(key, "h.example", 0, 0, b"body") for key in range(1, 5_000)]  # enough for a run
    partition.step([("1-1", encode_batch(urls))], 10, {})
    return directory


def test_sound_crawl_has_no_damage(config: Config) -> None:
    """Files as they were written are sound."""
    fill(config)
    assert list(damage_of(config)) == []


def test_flipped_byte_is_named_with_its_file(config: Config) -> None:
    """A byte changed in a run is found, and the line names the file."""
    run = next(fill(config).glob("e*/run-*"))
    damaged = bytearray(run.read_bytes())
    damaged[-20] ^= 0xFF
    run.write_bytes(damaged)
    lines = list(damage_of(config))
    assert len(lines) == 1
    assert str(run) in lines[0]


def test_crawl_that_is_not_there_is_an_error(config: Config) -> None:
    """Verifying nothing is no success."""
    with pytest.raises(ConfigError, match="no crawl 'c'"):
        list(damage_of(config))


def test_warc_file_that_is_moved_meanwhile_is_passed_over(config: Config, tmp_path: Path) -> None:
    """An uploader may take it; one that cannot be read is told."""
    fill(config)
    directory = tmp_path / "warc"
    directory.mkdir()
    (directory / "0.warc.gz").symlink_to(tmp_path / "moved.warc.gz")
    (directory / "1.warc.gz").mkdir()
    stored(directory, page("http://a.example/"))
    with_pages = read_config(
        {"BIGCRAWL_STATE_DIR": str(tmp_path), "BIGCRAWL_WARC_DIR": str(directory), "BIGCRAWL_CRAWL": "c"}
    )
    assert list(damage_of(with_pages)) == [f"{directory / '1.warc.gz'}: cannot be read: Is a directory"]
