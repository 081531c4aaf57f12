"""The one error that a person sees: what was found, where, what was expected, and what to do."""


class EvidenceError(Exception):
    """A refusal with a message for a person, a hint, and the exit code of the command.

    `message` is lower case and names file, place, what was found and what was expected; `hint` says
    what to do. `code` is the exit code: 1 rejected, 2 wrong usage or unreadable input, 4 incomplete.
    """

    def __init__(self, message: str, hint: str = "", *, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
