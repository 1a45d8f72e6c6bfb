"""The errors that a person can mend."""


class TraceOnceError(Exception):
    """One sentence for the person who can mend it: what is wrong, and what to do.

    **Arguments**

    - `message`: the sentence; shown as it is, without a traceback.
    - `exit_code`: 1 a check failed, 2 wrong usage, 3 the tool could not do its job.
    """

    def __init__(self, message: str, *, exit_code: int = 3) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(TraceOnceError):
    """The command was asked for something that does not exist or does not fit together."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=2)
