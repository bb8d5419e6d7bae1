"""What ends the advisor before its work is done; the message says what is needed."""


class AdvisorError(Exception):
    """Said to the user in one line, exit status 2."""
