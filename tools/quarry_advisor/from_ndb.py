"""
A dump of MySQL Cluster, made by mysqldump, as one that MariaDB with Quarry loads: `quarry-advisor --from-ndb dump.sql`.

Looks at definitions only: lines of values pass as they are, byte by byte. Within a definition, names, strings and comments of columns
pass, too. Each change is said with its line. Streams: a dump may be larger than memory, one line of it may not. Lines that a string or a comment
of a routine joins are looked at together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
    rb"(?P<quoted>`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"|--\s[^\n]*|/\*(?!!).*?\*/)"
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
# What has no code in it: quoted text and comments, but for MySQL's version comments. What of them is left over is open: it goes on on the next line.
_NO_CODE = re.compile(rb"`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"|(?:--\s|#)[^\n]*|/\*(?!!).*?\*/", re.DOTALL)
_OPEN = re.compile(rb"[`'\"]|/\*(?!!)")
_VALUES = re.compile(rb"(?:INSERT|REPLACE)\b|\(", re.IGNORECASE)  # mysqldump writes no line break into a value
JOINED_MAX_BYTES = 1 << 20
GZIP = b"\x1f\x8b"
_SCHEMA = re.compile(rb"(?:-- Current Database: |USE )`(?P<name>(?:[^`]|``)*)`")
SYSTEM_SCHEMAS = (b"mysql", b"ndbinfo", b"sys", b"performance_schema", b"information_schema")
_SETTING = re.compile(rb"/\*!\d+ SET ")  # what a dump begins and ends with, whatever schema is the last
_UNQUOTED = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[^`]")
_FOREIGN = re.compile(rb"\bENGINE\s*=\s*(\w+)", re.IGNORECASE)


def convert(dump: BinaryIO, out: BinaryIO, say: Callable[[str], None]) -> int:
    """Writes the dump to `out`; `say` gets one line for each change. Returns how many tables became QUARRY's. Error: AdvisorError."""
    tables, last, dropping, begun, is_system = 0, b"", 0, False, False
    for number, line, in_routine in _lines(dump):
        last = line if line.strip() else last
        begun = _begun(line, number, begun)
        if not in_routine:
            is_system = _is_system(line, number, is_system, say)
        if is_system and not _SETTING.match(line) and not line.startswith(ENDING):
            continue
        if dropping or (not in_routine and _DROPPED.match(line)):
            if not dropping:
                say(f"line {number}: left out: {_text(line)}")
            dropping = 0 if _ends(line, number) else dropping or number
            continue
        if not _DEFINITION.match(line):
            out.write(line)
            continue
        if not in_routine and _UNQUOTED.match(line):
            raise AdvisorError(f"line {number}: the name of the table stands in no backquotes: '{_text(line)}'. Make the dump without --skip-quote-names "
                               "and --compatible")
        changed = _changed(line, number, say)
        tables += changed.count(ENGINE) - line.count(ENGINE)
        for engine in _FOREIGN.findall(_PARTS.sub(b"", line)) if line.startswith(b")") else ():
            say(f"line {number}: ENGINE={_text(engine)} stays as it is")
        out.write(changed)
    if dropping:
        raise AdvisorError(f"line {dropping}: the statement of a TABLESPACE, LOGFILE GROUP or GTID_PURGED does not end. What was written is not the whole of it")
    if not last.startswith(ENDING):
        raise AdvisorError(f"the dump breaks off: its last line is no '{ENDING.decode()}', but '{_text(last)}'. What was written is not the whole of it "
                           "(a dump made with --compact or --skip-comments has no such line, and nothing else tells its end: make it without them)")
    return tables


def _lines(dump: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    """
    Each line with its number, and whether it is of a routine; lines that a string or comment joins are one. Error: one that is not closed, or a
    file that is no text.
    """
    text, first, delimiter = b"", 0, b";"
    for number, line in enumerate(dump, 1):
        if number == 1 and line.startswith(GZIP):
            raise AdvisorError("the dump is compressed by gzip: 'gunzip --keep' it first")
        if not text:
            first = number
        text += line
        if (first == number and _VALUES.match(line)) or not _OPEN.search(_NO_CODE.sub(b"", text)):
            found = _DELIMITER.match(text)
            delimiter = found[1] if found else delimiter
            yield first, text, delimiter != b";"
            text = b""
        elif len(text) > JOINED_MAX_BYTES:
            raise AdvisorError(f"line {first}: a string or comment begins there and does not end within {JOINED_MAX_BYTES >> 20} MiB")
    if text:
        raise AdvisorError(f"the dump breaks off: a string or comment begins in line {first} and does not end. What was written is not the whole of it")


def _is_system(line: bytes, number: int, was: bool, say: Callable[[str], None]) -> bool:
    """Whether what follows is of a schema of the server's own, whose tables have other shapes in MariaDB."""
    found = _SCHEMA.match(line)
    if not found:
        return was
    name = found["name"].lower()
    if name in SYSTEM_SCHEMAS and not was:
        say(f"line {number}: left out: the schema {_text(name)}. MariaDB has one of its own; create the accounts anew")
    return name in SYSTEM_SCHEMAS


def _ends(line: bytes, number: int) -> bool:
    """Whether the statement that is left out ends with this line. Error: another one begins behind it."""
    _statement, semicolon, rest = _NO_CODE.sub(b"", line).partition(b";")
    if rest.strip():
        raise AdvisorError(f"line {number}: behind a statement that is left out stands '{_text(rest)}'. Give each a line of its own")
    return bool(semicolon)


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

