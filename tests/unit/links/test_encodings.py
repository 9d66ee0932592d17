"""Pages in all encodings of the web have the right text and links."""

from __future__ import annotations

import random
import tomllib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import html5lib
import pytest
from w3lib.encoding import resolve_encoding
from webencodings.labels import LABELS

from bigcrawl.links import detection
from bigcrawl.links.encoding import Encoding
from bigcrawl.links.limits import IN_FORCE
from bigcrawl.links.page import extract_links, page_text
from bigcrawl.markup import WEB_ENCODINGS
from tests.support.feature_trees import PROJECT
from tests.support.running.tables import each

if TYPE_CHECKING:
    import re

    from bigcrawl.links.encoding import Page

pytestmark = pytest.mark.usefixtures("twin")

ROWS: list[dict[str, str]] = tomllib.loads((PROJECT / "tests/data/encodings.toml").read_text())["row"]
LINKS = ["http://a.example/first", "http://a.example/last"]


def page(body: bytes, content_type: bytes = b"text/html", url: str = "http://a.example/") -> Page:
    found: Any = SimpleNamespace(url=url, body=body, headers={"Content-Type": content_type})
    return found


def document(text: str, head: str = "") -> str:
    return (
        f'<html><head>{head}<title>{text}</title></head><body><a href="/first" title="{text}">{text}</a>'
        f"<p>{text} {text}</p><a title='{text}' href='/last'>{text}</a></body></html>"
    )


def forms(row: dict[str, str]) -> dict[str, tuple[bytes, bytes]]:
    """Bodies and headers that say an encoding in ten ways; the last two leave it to the bytes."""
    text, codec, label = row["text"], row["codec"], row["label"]
    meta, other = f'<meta charset="{label}">', '<meta charset="koi8-r">'
    long = f'<meta http-equiv="Content-Type" content="text/html; charset={label}">'
    plain = document(text).encode(codec)
    said = b"text/html; charset=" + label.encode()
    found = {
        "header": (plain, said),
        "quoted header": (plain, b'text/html;charset="%b"' % label.encode()),
        "header in capitals": (plain, said.upper()),
        "header against meta": (document(text, other).encode(codec), said),
        "meta": (document(text, meta).encode(codec), b"text/html"),
        "http-equiv": (document(text, long).encode(codec), b"text/html"),
        "meta and an unknown header": (document(text, meta).encode(codec), b"text/html; charset=none"),
        "mark against header": (b"\xef\xbb\xbf" + document(text).encode(), b"text/html; charset=" + label.encode()),
    }
    if codec.startswith("utf-16"):
        found = {name: form for name, form in found.items() if "header" in name and "meta" not in name}
    if row["detected"] == "yes":
        found["nothing"] = (document(f"{text} " * 4).encode(codec), b"text/html")
        found["nothing, and no type"] = (document(f"{text} " * 4).encode(codec), b"")
    return found


DOCUMENTS = [
    pytest.param(row, body, header, id=f"{row['label']} by {name}")
    for row in ROWS
    for name, (body, header) in forms(row).items()
]


def test_there_are_three_hundred_documents() -> None:
    """In more than thirty encodings."""
    assert len(DOCUMENTS) >= 300
    assert len(ROWS) >= 30


@each("row, body, header", DOCUMENTS)
def test_document_has_its_text_and_links(row: dict[str, str], body: bytes, header: bytes) -> None:
    """By byte-order mark, header, meta element or content, in this order (HTML, determining the character encoding)."""
    found = page(body, header)
    assert row["text"] in page_text(found)
    assert extract_links(found) == LINKS


@each("row, body, header", [one for one in DOCUMENTS if "nothing" not in str(one.id)])
def test_text_is_that_of_html5lib(row: dict[str, str], body: bytes, header: bytes) -> None:
    """Where an encoding is declared; by the code of others."""
    label = header.lower().partition(b"charset=")[2].strip(b'"').decode() or None
    tree = html5lib.parse(body, transport_encoding=label, namespaceHTMLElements=False)
    title = tree.findtext("head/title") or ""
    assert title == row["text"]
    assert title in Encoding(page(body, header), IN_FORCE.limits.page_bytes).text()


def test_labels_of_the_standard_are_known() -> None:
    """All but those of encodings that browsers refuse to read."""
    refused = ("replacement", "x-user-defined")
    labels = [label for label, name in LABELS.items() if name not in refused]
    assert [label for label in labels if resolve_encoding(label) not in WEB_ENCODINGS] == []


JAPANESE = ("iso2022_jp", "euc_jp", "cp932")
WORDS = (
    "日本語のページ",
    "表示ソース",
    "能力と十貼",
    "リンク集",
    "東京都港区",
    "ニュース一覧",
    "検索エンジン",
    "予定表",
)


@pytest.mark.parametrize("declared", ["", "iso-2022-jp", "euc-jp", "shift_jis"])
@each("seed", range(30))
def test_document_in_three_japanese_encodings_loses_no_link(seed: int, declared: str) -> None:
    """002, section 3.3.2: "even if a document includes all three encoding styles at the same time"."""
    dice = random.Random(seed)
    body = f"<html><head><meta charset={declared}>".encode() if declared else b"<html><head>"
    links, texts = [], []
    codecs = [*JAPANESE, *(dice.choice(JAPANESE) for _ in range(9))]
    dice.shuffle(codecs)
    for number, codec in enumerate(codecs):
        text = "".join(dice.choice(WORDS) for _ in range(dice.randint(1, 4)))
        links.append(f"http://a.example/{number}")
        texts.append(text)
        body += f'<p>{text}<a title="{text}" href="/{number}">{text}</a>\n'.encode(codec)
    found = page(body)
    assert extract_links(found) == links
    shown = page_text(found)
    assert [text for text in texts if text not in shown] == []


@pytest.mark.parametrize(
    "unit", [b"\x82\xa0 ", b"\xa4\xa2\x81 ", b"\x1b$B", b'\x1b$B$"', b"\xff", b"<\x80", b'\x82"<a ']
)
@pytest.mark.parametrize("declared", [b"", b"shift_jis", b"euc-jp", b"iso-2022-jp"])
def test_hostile_page_is_read_in_few_pieces(unit: bytes, declared: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two million odd bytes are decoded in at most `RUNS_MAX` pieces, and the rest at once."""
    runs: list[int] = []
    read = detection._run

    def counted(run: re.Match[bytes], name: str) -> str:
        runs.append(1)
        return read(run, name)

    monkeypatch.setattr(detection, "_run", counted)
    body = b"<meta charset=%b>" % declared + unit * (2_000_000 // len(unit))
    Encoding(page(body), 4 << 20).text()
    assert len(runs) <= detection.RUNS_MAX
