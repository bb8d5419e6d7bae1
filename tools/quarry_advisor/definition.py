"""
SHOW CREATE TABLE, read as the server reads it: quotes and backticks understood, nothing cut at what only looks like the end of a line.

A column's comment, a default, a CHECK, even the value of an option that the engine does not know are other people's text. What is put into
a statement must be the column's definition and nothing else, so each part of it is recognised, and compared with what information_schema
says of the column. A part that is not known, or differs, is a reason to write no statement. Pure functions; errors: AdvisorError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import AdvisorError
from .shown import shown

OPTION_NAMES = frozenset(("INLINE_SIZE", "PREFIX_SIZE", "PART_SIZE", "CODEC", "DEFAULTS"))
# The session that reads has neither ANSI_QUOTES nor NO_BACKSLASH_ESCAPES (target.py).
_PATTERNS = re.compile(
    r"(?P<space>[ \n]+)"
    r"|(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<string>'(?:[^'\\]|''|\\.)*')"
    r"|(?P<comment>/\*(?:`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|(?!\*/).)*\*/)"
    r"|(?P<word>[A-Za-z0-9_$]+(?:\.[0-9]+)?)"
    r"|(?P<symbol>-(?!-)|/(?!\*)|[(),=+*%<>!&|^~.:?@])",
    re.DOTALL)
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}


@dataclass(frozen=True)
class Token:
    """`text`: of a name or a string what it means, of anything else what stands there."""

    kind: str  # name, string, comment, word, symbol
    text: str
    spaced: bool  # white space stands before it

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        return self.kind == "symbol" and self.text == symbol


@dataclass(frozen=True)
class Facts:
    """Of one column, by information_schema."""

    column_type: str
    nullable: bool
    default: str | None  # as an expression; None: it has none
    character_set: str | None
    collation: str | None
    extra: str
    comment: str
    generated: str | None
    check: str | None  # None: no CHECK that this account may see


def tokens(text: str) -> list[Token]:
    found, at, spaced = [], 0, False
    while at < len(text):
        match = _PATTERNS.match(text, at)
        if not match:
            raise AdvisorError(f"the definition of the table has '{shown(text[at:at + 20])}' where no such thing is known: no statement can be made of it")
        kind, part = match.lastgroup, match[0]
        if kind != "space":
            found.append(Token(kind, _meaning(kind, part), spaced))
        spaced, at = kind == "space", match.end()
    return found


def _meaning(kind: str, part: str) -> str:
    if kind == "name":
        return part[1:-1].replace("``", "`")
    if kind == "string":
        return re.sub(r"''|\\(.)", lambda found: _ESCAPES.get(found[1], found[1]) if found[1] else "'", part[1:-1], flags=re.DOTALL)
    return part


def sql_string(text: str) -> str:
    """The literal ends at the same place, whatever sql_mode reads it: a backslash never stands before a quote by itself."""
    for raw, escape in (("\\", "\\\\"), ("\0", "\\0"), ("\n", "\\n"), ("\r", "\\r"), ("\x1a", "\\Z"), ("'", "''")):
        text = text.replace(raw, escape)
    return f"'{text}'"


def sql_name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def sql(found: list[Token]) -> str:
    """The tokens as a text again; comments, where there are any left, are not in it."""
    write = {"name": sql_name, "string": sql_string}
    parts = [(" " if token.spaced else "") + write.get(token.kind, str)(token.text) for token in found if token.kind != "comment"]
    return "".join(parts).strip(" ")


def clauses(found: list[Token]) -> list[list[Token]]:
    """Cut at the commas that stand in no parenthesis."""
    parts, depth = [[]], 0
    for token in found:
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth < 0:
            raise AdvisorError("the definition of the table closes a parenthesis that it did not open: no statement can be made of it")
        if token.is_symbol(",") and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    if depth:
        raise AdvisorError("the definition of the table leaves a parenthesis open: no statement can be made of it")
    return parts


def _parenthesis(found: list[Token], at: int) -> int:
    """Behind the one that opens at `at`."""
    depth = 0
    for end in range(at, len(found)):
        depth += found[end].is_symbol("(") - found[end].is_symbol(")")
        if depth == 0:
            return end + 1
    raise AdvisorError("the definition of the table leaves a parenthesis open: no statement can be made of it")


def _body(create_table: str) -> tuple[list[list[Token]], list[Token]]:
    """What stands in the table's parenthesis, cut at its commas, and what stands behind it."""
    found = tokens(create_table)
    start = next((at for at, token in enumerate(found) if token.is_symbol("(")), None)
    if start is None:
        raise AdvisorError("the definition of the table lists no columns: no statement can be made of it")
    end = _parenthesis(found, start)
    return clauses(found[start + 1 : end - 1]), found[end:]


def column_definitions(create_table: str) -> dict[str, str]:
    """The definition of each column behind its name, in their order."""
    return {part[0].text: sql(part[1:]) for part in _body(create_table)[0] if part and part[0].kind == "name"}


def options_of(found: list[Token]) -> Iterator[tuple[int, int]]:
    """(start, end) of each option of the engine: `NAME`=value, in no parenthesis."""
    depth = 0
    for at, token in enumerate(found):
        depth += token.is_symbol("(") - token.is_symbol(")")
        names = token.kind == "name" or token.is_word(*OPTION_NAMES)
        if depth == 0 and names and at + 2 < len(found) and found[at + 1].is_symbol("=") and found[at + 2].kind in ("string", "word", "name"):
            yield at, at + 3


def without_options(found: list[Token], every: bool = False) -> list[Token]:
    """`every`: those of other engines, too."""
    gone = {at for start, end in options_of(found) if every or found[start].text.upper() in OPTION_NAMES for at in range(start, end)}
    return [token for at, token in enumerate(found) if at not in gone]


def essence(create_table: str) -> list[list[tuple[str, str]]]:
    """All of a definition that Quarry's options and another engine's name do not change."""
    parts, tail = _body(create_table)
    return [_meanings(_without_engine(without_options([token for token in part if token.kind != "comment"]))) for part in (*parts, tail)]


def _without_engine(found: list[Token]) -> list[Token]:
    """ENGINE=name goes, of the table and of its partitions, and AUTO_INCREMENT=n, which goes on by itself."""
    gone = {at + i for at, token in enumerate(found[:-2]) if token.is_word("ENGINE", "AUTO_INCREMENT") and found[at + 1].is_symbol("=") for i in range(3)}
    return [token for at, token in enumerate(found) if at not in gone]


# --- what stands in a column's definition ---
_BEHIND_DEFAULT = ("COMMENT", "CHECK", "ON", "NOT", "INVISIBLE", "GENERATED", "WITHOUT")


class _Reader:
    """Walks over one definition; what it does not know is named by `doubt`."""

    def __init__(self, name: str, definition: str, facts: Facts):
        self.name, self.facts, self.at = name, facts, 0
        self.found = without_options(tokens(definition), every=True)

    def words(self, *wanted: str) -> bool:
        """Steps over these words when they are next."""
        here = self.found[self.at : self.at + len(wanted)]
        is_next = len(here) == len(wanted) and all(token.is_word(word) for token, word in zip(here, wanted))
        self.at += len(wanted) if is_next else 0
        return is_next

    def take(self, kind: str) -> str | None:
        """The text of the next token, if it is of this kind."""
        if self.at < len(self.found) and self.found[self.at].kind == kind:
            self.at += 1
            return self.found[self.at - 1].text
        return None

    def parenthesis(self) -> list[tuple[str, str]] | None:
        if self.at >= len(self.found) or not self.found[self.at].is_symbol("("):
            return None
        start, self.at = self.at, _parenthesis(self.found, self.at)
        return _meanings(self.found[start + 1 : self.at - 1])

    def until_attribute(self) -> list[tuple[str, str]]:
        start = self.at
        while self.at < len(self.found) and not (self.at > start and self.found[self.at].is_word(*_BEHIND_DEFAULT)):
            self.at = _parenthesis(self.found, self.at) if self.found[self.at].is_symbol("(") else self.at + 1
        return _meanings(self.found[start : self.at])

    def doubt(self) -> str | None:
        kind = tokens(self.facts.column_type)
        if _meanings(self.found[: len(kind)]) != _meanings(kind):
            return f"its type is not '{shown(self.facts.column_type)}'"
        self.at = len(kind)
        while self.at < len(self.found):
            start = self.at
            wrong = self._attribute()
            if wrong:
                return f"'{shown(sql(self.found[start:]))}' {wrong}"
        return self._missing()

    def _attribute(self) -> str | None:
        facts = self.facts
        if self.words("CHARACTER", "SET"):
            return None if self.take("word") == facts.character_set else f"is not its character set {facts.character_set}"
        if self.words("COLLATE"):
            return None if self.take("word") == facts.collation else f"is not its collation {facts.collation}"
        if self.words("GENERATED", "ALWAYS", "AS"):
            is_same = facts.generated is not None and self.parenthesis() == _meanings(tokens(facts.generated))
            return None if is_same and (self.words("STORED") or self.words("VIRTUAL")) else "is not how it is computed"
        if self.words("NOT", "NULL"):
            return None if not facts.nullable else "though it may be NULL"
        if self.words("NULL"):
            return None if facts.nullable else "though it may not be NULL"
        if self.words("INVISIBLE"):
            return None if "INVISIBLE" in facts.extra.upper() else "though it is visible"
        if self.words("WITHOUT", "SYSTEM", "VERSIONING"):
            return None if "WITHOUT SYSTEM VERSIONING" in facts.extra.upper() else "though it has a history"
        return self._value()

    def _value(self) -> str | None:
        facts = self.facts
        if self.words("DEFAULT"):
            is_same = _bare(self.until_attribute()) == _bare(_meanings(tokens("NULL" if facts.default is None else facts.default)))
            return None if is_same else "is not its default"
        if self.words("COMMENT"):
            return None if self.take("string") == facts.comment else "is not its comment"
        if self.words("CHECK"):
            check = self.parenthesis()
            of_json = [("word", "json_valid"), ("symbol", "("), ("name", self.name), ("symbol", ")")]
            is_same = check is not None and (check == of_json if facts.check is None else _bare(check) == _bare(_meanings(tokens(facts.check))))
            return None if is_same else "is not its CHECK constraint, as far as this account may see that"
        return "is nothing that quarry-advisor knows"

    def _missing(self) -> str | None:
        """What information_schema speaks of, and the definition does not."""
        has = {token.text.upper() for token in self.found if token.kind == "word"}
        for word, is_wanted in (("COMMENT", bool(self.facts.comment)), ("CHECK", self.facts.check is not None), ("GENERATED", bool(self.facts.generated))):
            if is_wanted and word not in has:
                return f"its {word} is missing"
        return None


def _meanings(found: list[Token]) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in found]


def _bare(meanings: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without the parentheses around an expression, which are written in one place and not in another."""
    while len(meanings) > 1 and meanings[0] == ("symbol", "(") and meanings[-1] == ("symbol", ")"):
        depths = [sum((1 if m == ("symbol", "(") else -1 if m == ("symbol", ")") else 0) for m in meanings[: at + 1]) for at in range(len(meanings))]
        if 0 in depths[:-1]:
            break
        meanings = meanings[1:-1]
    return meanings


def doubt(name: str, definition: str, facts: Facts) -> str | None:
    """Why `definition` is not to be put into a statement; None: it says what information_schema says of the column, and nothing else."""
    try:
        found = _Reader(name, definition, facts).doubt()
    except AdvisorError as error:
        found = str(error)
    return found and f"the definition of column {shown(name)} cannot be relied upon: {found}. Write the ALTER TABLE by hand"


def check_statement(statement: str, clause_count: int) -> None:
    """That the server will read the clauses that were meant, and no other."""
    found = tokens(statement)
    if any(token.kind == "comment" for token in found) or len(clauses(found)) != clause_count:
        raise AdvisorError("the statement would not be read as it was meant: none is made")
