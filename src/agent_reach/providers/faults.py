"""The two ways in which a source can fail to give a value; neither text ever holds the value."""

from __future__ import annotations


class NotFoundError(Exception):
    """The source was asked and has no such value; a default may take its place."""


class SourceError(Exception):
    """The source could not answer: no permission, no connection, no time; a default never hides this."""


class ForeignError(SourceError):
    """A source could not answer, and the text is not reach's own: values are removed before it is shown."""
