"""
A dump of MySQL Cluster, made by mysqldump, as one that MariaDB with Quarry loads: `quarry-advisor --from-ndb dump.sql`.

Looks at definitions only: lines of values pass as they are, byte by byte. Within a definition, names, strings and comments of columns
pass, too. Each change is said with its line. Streams: a dump may be larger than memory, one line of it may not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import BinaryIO

from .errors import AdvisorError
from .shown import shown

ENGINE = b"ENGINE=QUARRY DEFAULTS=NDB"
PARTITION_ENGINE = b"ENGINE=QUARRY"
ENDING = b"-- Dump completed"
COLLATIONS = {b"ai_ci": b"utf8mb4_uca1400_nopad_ai_ci", b"as_ci": b"utf8mb4_uca1400_nopad_as_ci",
              b"as_cs": b"utf8mb4_uca1400_nopad_as_cs", b"bin": b"utf8mb4_nopad_bin"}
# Only what is outside of quotes is changed. A version comment is one of MySQL's: /*!50606 STORAGE DISK */.
_PARTS = re.compile(
    rb"(?P<quoted>`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*')"
    rb"|(?P<storage>/\*!\d+\s+(?:TABLESPACE\s+(?:`(?:[^`]|``)*`|\w+)\s*)?(?:STORAGE\s+\w+)?\s*\*/)"
    rb"|(?P<format>/\*!\d+\s+COLUMN_FORMAT\s+\w+\s*\*/)"
    rb"|(?P<engine>\bENGINE\s*=\s*(?:ndbcluster|ndb)\b)"
    rb"|(?P<collation>\butf8mb4_(?:\w+_)?0900_(?P<kind>\w+)\b)",
    re.IGNORECASE | re.DOTALL)
_DROPPED = re.compile(rb"\s*(?:CREATE|ALTER)\s+(?:LOGFILE\s+GROUP|TABLESPACE)\b|\s*SET\s+@@GLOBAL\.GTID_PURGED\b", re.IGNORECASE)
_DEFINITION = re.compile(rb"\s*(?:/\*!\d+\s+)?(?:CREATE|ALTER|USE|SET)\b|  `|\)|\s*/\*!|\s+(?:CONSTRAINT|KEY|UNIQUE|DECLARE)\b|[\s(]+(?:SUB)?PARTITION\b")
_PARTITION = re.compile(rb"[\s(]+(?:SUB)?PARTITION\b")
_DELIMITER = re.compile(rb"DELIMITER\s+(\S+)", re.IGNORECASE)
_HEADER = re.compile(rb"-- \w+ dump ")
# What has no semicolon of the statement in it: quoted text, and what follows `-- `.
_NO_CODE = re.compile(rb"`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|--\s.*", re.DOTALL)
_FOREIGN = re.compile(rb"\bENGINE\s*=\s*(\w+)", re.IGNORECASE)


def convert(dump: BinaryIO, out: BinaryIO, say: Callable[[str], None]) -> int:
    """Writes the dump to `out`; `say` gets one line for each change. Returns how many tables became QUARRY's. Error: AdvisorError."""
    tables, last, dropping, delimiter, begun = 0, b"", 0, b";", False
    for number, line in enumerate(dump, 1):
        last = line if line.strip() else last
        begun = _begun(line, number, begun)
        if dropping or (delimiter == b";" and _DROPPED.match(line)):
            if not dropping:
                say(f"line {number}: left out: {_text(line)}")
            dropping = 0 if b";" in _NO_CODE.sub(b"", line) else dropping or number
            continue
        if found := _DELIMITER.match(line):
            delimiter = found[1]
        if not _DEFINITION.match(line):
            out.write(line)
            continue
        changed = _changed(line, number, say)
        tables += changed.count(ENGINE) - line.count(ENGINE)
        for engine in _FOREIGN.findall(_PARTS.sub(b"", line)) if line.startswith(b")") else ():
            say(f"line {number}: ENGINE={_text(engine)} stays as it is")
        out.write(changed)
    if dropping:
        raise AdvisorError(f"line {dropping}: the statement of a TABLESPACE, LOGFILE GROUP or GTID_PURGED does not end. What was written is not the whole of it")
    if not last.startswith(ENDING):
        raise AdvisorError(f"the dump breaks off: its last line is no '{ENDING.decode()}', but '{_text(last)}'. What was written is not the whole of it")
    return tables


def _begun(line: bytes, number: int, begun: bool) -> bool:
    """Whether a dump is under way. Error: another one begins before it ended, as in files that were joined."""
    if not _HEADER.match(line):
        return begun and not line.startswith(ENDING)
    if begun:
        raise AdvisorError(f"a dump breaks off before line {number}, where another one begins. What was written is not the whole of it")
    return True


def _changed(line: bytes, number: int, say: Callable[[str], None]) -> bytes:
    """The line as MariaDB reads it. The server refuses options of Quarry on a single partition."""
    engine = PARTITION_ENGINE if _PARTITION.match(line) else ENGINE
    return _PARTS.sub(lambda found: _replacement(found, engine, number, say), line)


def _replacement(found: re.Match[bytes], engine: bytes, number: int, say: Callable[[str], None]) -> bytes:
    if found["quoted"] is not None:
        return found[0]
    if found["engine"] is not None:
        after = engine
    elif found["collation"] is not None:
        kind = found["kind"].lower()
        after = COLLATIONS.get(kind)
        if after is None:
            allowed = ", ".join(sorted(key.decode() for key in COLLATIONS))
            raise AdvisorError(f"line {number}: no counterpart of the collation '{_text(found[0])}' is known (known endings: {allowed})")
        if len(found[0]) != len(b"utf8mb4_0900_") + len(kind):
            say(f"line {number}: {_text(found[0])} has rules of a language, {after.decode()} has none")
    elif not found[0].strip(b"/*! 0123456789"):
        return found[0]  # an empty comment
    else:
        after = b""
    say(f"line {number}: {_text(found[0])} -> {after.decode() or 'nothing'}")
    return after


def _text(line: bytes) -> str:
    return shown(line.decode("utf-8", errors="replace").strip()[:100])

