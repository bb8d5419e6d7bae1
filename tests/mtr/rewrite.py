"""Makes a test of MariaDB's own name QUARRY where it names InnoDB as the engine of a table.

Replaced is the word InnoDB after an assignment to something called an engine: ENGINE=InnoDB in CREATE and ALTER, the
default engine in options and SET, `let $engine_type= InnoDB`, WHERE engine='InnoDB'; and the word in masks
(replace_result), which would not hide our name otherwise. Not replaced: SHOW ENGINE INNODB STATUS, what is asked of
INFORMATION_SCHEMA.ENGINES (is InnoDB there at all?), names of files, variables, options and messages. Both names have
six letters, so that lengths and binlog positions stay what they are.
"""

import re

SUFFIXES = {".test", ".inc", ".opt", ".cnf", ".combinations"}
OPTION_SUFFIXES = {".opt", ".cnf", ".combinations"}

ENGINE = re.compile(
    r"(?P<show>\bshow[ \t]+)?"
    r"(?P<before>[\w-]*engine\w*(?:['\"`]?\s*(?::?==?|!=|<>)\s*|[ \t]+)[\\'\"`]*[ \t]*)"
    r"innodb\b",
    re.IGNORECASE,
)
MASK = re.compile(r"^[ \t]*(?:--)?[ \t]*replace_result\b.*$", re.IGNORECASE | re.MULTILINE)
WORD = re.compile(r"\binnodb\b", re.IGNORECASE)
ENGINES_TABLE = re.compile(r"information_schema\W*\.\W*engines\b[^;]*\Z", re.IGNORECASE)
LOOK_BACK_BYTES = 300


def rewrite(text, suffix):
    """The text of a test file with QUARRY as the engine; the same object when nothing had to be changed."""
    if "innodb" not in text.lower():
        return text
    name = "quarry" if suffix in OPTION_SUFFIXES else "QUARRY"

    def engine(match):
        asked_before = text[max(0, match.start() - LOOK_BACK_BYTES) : match.start()]
        if match["show"] or ENGINES_TABLE.search(asked_before):
            return match[0]
        return match["before"] + name

    changed = ENGINE.sub(engine, text)
    changed = MASK.sub(lambda mask: WORD.sub(same_case, mask[0]), changed)
    return text if changed == text else changed


def same_case(match):
    return "quarry" if match[0].islower() else "QUARRY"
