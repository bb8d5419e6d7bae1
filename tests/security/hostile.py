"""Names and comments as an attacker chooses them, and what must not come out of a tool.

The server takes names of characters up to U+FFFF; comments may hold any character.
"""

LINE_SEPARATOR = "\u2028"
# What a column's comment would need to be in order to become the definition of another column (S6 of the audit).
SMUGGLED = f"x{LINE_SEPARATOR}  `body` longtext CODEC=zstd, RENAME TO secretdb.planted -- "
NAMES = {
    "quotes": "it's \"quoted\" `twice``",
    "line feed": "a\n  `body` longtext, DROP COLUMN id\nverdict: all well",
    "line separator": f"a{LINE_SEPARATOR}b\u2029c\x85d",
    "escape": "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "csi": "\x9b31mred",
    "direction": "\u202etxt.exe\u2066x",
    "markup": "[bold]loud[/bold] [/red] [link=x]",
    "html": "<b>bold</b><script>alert(1)</script>&amp;",
    "comment": "a -- b /* c */ # d ; DROP DATABASE x; --",
    "percent": "%s %n %d {0} {x} $(id) `id` \\",
    "long": "\u00e9" * 64,
    "cjk": "\u6f22\u5b57" * 10,
}
COMMENTS = {**NAMES, "smuggled": SMUGGLED, "emoji": "\U0001f600" * 64, "nul": "a\0b", "backslash": "\\' \\"}


def raw(text):
    """The characters in it that a terminal would obey; line feeds are judged by whoever knows which are ours."""
    return sorted({unit for unit in text if not unit.isprintable() and unit != "\n"})


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def literal(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"
