"""
Realistic documents for machines that have few files: JSON documents, HTML pages, logs, serialized objects, image-like
data.

Invariant: the same seed and the same sequence of calls give the same bytes on every machine (random.Random only, no
time, no hash order). Text compresses about as such documents do (3:1 and better), image-like data not at all.
"""

from __future__ import annotations

import json
import pickle
import random

_WORDS = (
    "account address archive balance batch billing branch buffer carrier catalog channel charge claim client column"
    " commit contract country courier credit currency customer debit delivery deposit device discount document drawing"
    " driver engine entry estimate event export factory figure folder freight handle harbour import index insurance"
    " invoice item journal ledger letter licence limit location machine manual margin market material measure memory"
    " message method model module notice number object offer office order packet page parcel partner payment period"
    " permit picture policy price printer process product profile project proof purchase quantity quarter query receipt"
    " record region register release report request reserve return review route sample schedule segment sensor service"
    " session shipment signal source station status storage supplier support survey system table target tariff ticket"
    " title token transfer transit travel unit update value vehicle vendor version voucher warehouse warranty weight"
    " window worker yield"
).split()
_FRAGMENTS = (
    3000  # rendered once per kind; documents are drawn from them, so that generating costs little more than copying
)


class DocumentGenerator:
    """Makes documents of a wanted size. Externally synchronised."""

    KINDS = ("json", "html", "log", "serialized", "image-like")

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._fragments = {
            "json": [self._json_record() for _ in range(_FRAGMENTS)],
            "html": [self._html_block() for _ in range(_FRAGMENTS)],
            "log": [self._log_line(i) for i in range(_FRAGMENTS)],
        }

    def make(self, size_bytes: int) -> tuple[str, bytes]:
        """A document of exactly size_bytes (its last record is cut off where it must be); its kind and its bytes."""
        kind = self._random.choices(self.KINDS, weights=(3, 3, 2, 2, 3))[0]
        if kind == "image-like":
            return kind, (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + self._random.randbytes(size_bytes))[:size_bytes]
        if kind == "serialized":
            return kind, self._serialized(size_bytes)
        return kind, self._text(kind, size_bytes)

    def _text(self, kind: str, size_bytes: int) -> bytes:
        start, between, end = {
            "json": (b'{"documents":[\n', b",\n", b"\n]}\n"),
            "html": (b"<!doctype html>\n<html><body>\n", b"\n", b"\n</body></html>\n"),
            "log": (b"", b"\n", b"\n"),
        }[kind]
        pieces, room = [], size_bytes - len(start) - len(end)
        while room > 0:
            piece = self._random.choice(self._fragments[kind])
            pieces.append(piece)
            room -= len(piece) + len(between)
        body = between.join(pieces)[: max(0, size_bytes - len(start) - len(end))]
        return (start + body + end)[:size_bytes]

    def _serialized(self, size_bytes: int) -> bytes:
        rng, records, total = self._random, [], 0
        while total < size_bytes:
            record = {
                "id": rng.getrandbits(64),
                "name": self._words(4),
                "tags": rng.sample(_WORDS, 5),
                "weights": rng.randbytes(96),
                "history": [rng.getrandbits(31) for _ in range(24)],
                "note": self._words(20),
            }
            records.append(pickle.dumps(record, protocol=4))
            total += len(records[-1])
        return b"".join(records)[:size_bytes]

    def _words(self, count: int) -> str:
        return " ".join(self._random.choices(_WORDS, k=count))

    def _json_record(self) -> bytes:
        rng = self._random
        return json.dumps(
            {
                "id": f"{rng.getrandbits(128):032x}",
                "customer": rng.randrange(10**7),
                "status": rng.choice(("open", "paid", "late", "void")),
                "lines": [
                    {
                        "sku": f"{rng.choice(_WORDS)[:3].upper()}-{rng.randrange(10**6):06}",
                        "quantity": rng.randrange(1, 40),
                        "price": rng.randrange(10**6) / 100,
                        "text": self._words(rng.randrange(3, 9)),
                    }
                    for _ in range(rng.randrange(1, 6))
                ],
                "remark": self._words(rng.randrange(4, 30)),
            }
        ).encode()

    def _html_block(self) -> bytes:
        rng = self._random
        cells = "".join(
            f'<td class="{rng.choice(_WORDS)}">{rng.randrange(10**6)}</td>' for _ in range(rng.randrange(2, 8))
        )
        heading, text = self._words(4).title(), self._words(rng.randrange(20, 90))
        return (
            f'<section id="s{rng.getrandbits(40):x}"><h2>{heading}</h2>\n<p>{text}.</p>\n'
            f"<table><tr>{cells}</tr></table></section>"
        ).encode()

    def _log_line(self, number: int) -> bytes:
        rng = self._random
        date = f"2024-{number % 12 + 1:02}-{number % 28 + 1:02}"
        clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(10**6):06}"
        return (
            f"{date}T{clock}Z {rng.choice(('INFO', 'INFO', 'INFO', 'WARN', 'ERROR'))}"
            f" {rng.choice(_WORDS)}.{rng.choice(_WORDS)}"
            f" request={rng.getrandbits(64):016x} took={rng.randrange(10**5)}us"
            f" client=10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"
            f" {self._words(rng.randrange(3, 12))}"
        ).encode()
