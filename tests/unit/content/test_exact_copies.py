from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.content.exact_copies import CONTENTS, content_key, find_and_add
from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket
from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    from pathlib import Path


def table_in(directory: Path, fresh_max: int = 1024) -> Bucket:
    return Bucket(directory, CONTENTS._replace(fresh_max=fresh_max), EMPTY_BUCKET, DiskFiles())


def ask(table: Bucket, *rows: tuple[int, int]) -> list[int]:
    keys, pages = (np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True))
    originals: list[int] = find_and_add(table, keys, pages, table.commit).tolist()
    return originals


def test_the_first_page_with_a_content_is_the_original(tmp_path: Path) -> None:
    """Of one batch and of several, however often it comes again."""
    table = table_in(tmp_path)
    assert ask(table, (70, 1), (71, 2), (70, 3), (70, 1)) == [0, 0, 1, 0]
    assert ask(table, (71, 4), (72, 5), (70, 3), (71, 2)) == [2, 0, 1, 0]
    assert len(table) == 3


def test_every_copy_is_found_among_many(tmp_path: Path) -> None:
    """By the word of a dict, in batches of all sizes, with runs on disk."""
    rng = random.Random(1)
    table = table_in(tmp_path, fresh_max=200)
    first: dict[int, int] = {}
    for _ in range(40):
        rows = [(rng.randrange(4_000), rng.randrange(1, 1 << 63)) for _ in range(rng.randrange(1, 300))]
        expected = [0 if first.setdefault(key, page) == page else first[key] for key, page in rows]
        assert ask(table, *rows) == expected
    table._check()
    assert table.verify() == []


def test_a_content_is_known_by_its_payload() -> None:
    """The key is that of the digest in the WARC record."""
    digest = hashlib.sha1(b"body", usedforsecurity=False).digest()
    assert content_key(digest).to_bytes(8, "little") == digest[:8]
