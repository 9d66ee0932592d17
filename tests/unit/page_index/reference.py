"""What others say of a WARC file: warcio's records, and the keys of the package surt, as pywb's indexer joins them."""

from __future__ import annotations

import socket
import warnings
from typing import TYPE_CHECKING, Any

from warcio.archiveiterator import ArchiveIterator

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its patterns are written as strings that Python warns of
    from surt import surt

if TYPE_CHECKING:
    from pathlib import Path


def reference_key(url: bytes) -> bytes:
    """The search key by surt."""
    return bytes(surt(url))


def never_ask_dns(host: bytes) -> tuple[str, list[str], list[str]]:
    """In the place of `socket.gethostbyname_ex`, which surt asks for addresses in unusual spellings."""
    try:
        return "", [], [socket.inet_ntoa(socket.inet_aton(host.decode()))]
    except OSError:
        raise socket.gaierror from None


def reference_lines(path: Path) -> list[tuple[bytes, str, dict[str, Any]]]:
    """Key, time and fields of each capture, sorted as the lines of a CDXJ are."""
    found = []
    with path.open("rb") as file:
        records = ArchiveIterator(file)
        for record in records:
            kind, head, http = record.rec_type, record.rec_headers, record.http_headers
            if kind not in {"response", "revisit"}:
                continue
            url = head.get_header("WARC-Target-URI")
            told = [value for name, value in http.headers if name == "Content-Type"]
            mime = (told or ["unk"])[-1].partition(";")[0]  # the last one counts (Fetch, extract a MIME type)
            fields = {"url": url, "mime": "warc/revisit" if kind == "revisit" else mime}
            if kind == "response":
                fields["status"] = http.get_statuscode()
            fields["digest"] = head.get_header("WARC-Payload-Digest").removeprefix("sha1:")
            record.content_stream().read()
            records.read_to_end(record)
            offset, size = records.member_info
            fields |= {"length": str(size), "offset": str(offset), "filename": path.name}
            stamp = "".join(filter(str.isdigit, head.get_header("WARC-Date")))[:14]
            found.append((reference_key(url.encode()), stamp, fields))
    return sorted(found, key=lambda line: (line[0] + b" " + line[1].encode(), int(line[2]["offset"])))
