"""What quarry-backup says. Names and the server's words are other people's text: what a terminal would obey becomes visible."""


def shown(text):
    """Line feeds stay: messages of several lines are ours, or mariadb-backup's."""
    return "".join(unit if unit.isprintable() or unit == "\n" else _escaped(ord(unit)) for unit in text)


def _escaped(code):
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def say(text):
    print(f"quarry-backup: {shown(text)}", flush=True)
