"""The root of every error that Tidemark raises on purpose."""


class TidemarkError(Exception):
    """A sentence for a person: what is wrong, where, and what to do about it.

    The command line prints it without a stack trace and exits with status 2.
    """
