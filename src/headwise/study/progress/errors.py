"""What can go wrong with a learner's progress, in words for the learner."""

from __future__ import annotations


class ProgressError(Exception):
    """Progress can't be read or written. `str` says what happened, what was kept, and what to do.

    `status` is the HTTP status that the server answers with.
    """

    status = 500
    name = "failed"


class Refused(ProgressError):
    """What was sent makes no sense: a rating that is none, an id that is none."""

    status = 422
    name = "refused"


class Conflict(ProgressError):
    """Something else was written in the meantime, by another tab or server; nothing was added."""

    status = 409
    name = "conflict"


class NotSaved(ProgressError):
    """The disk is full, or can't be written: nothing was added, and the same may be sent again."""

    status = 507
    name = "not-saved"


class Damaged(ProgressError):
    """The file of progress is no database, or a broken one: it is left as it is."""

    status = 500
    name = "damaged"


class BadImport(ProgressError):
    """A file to be imported is broken: nothing was changed."""

    status = 422
    name = "bad-import"
