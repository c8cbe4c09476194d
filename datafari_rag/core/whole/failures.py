"""
How work on whole documents fails besides `core/errors.py`: two cases of its classes.

Each has the label of its class, so that every protocol can spell it.
"""

from __future__ import annotations

from datafari_rag.core.errors import NoDocuments, NotAllowed


class EmptyDocument(NoDocuments):
    """The document is there, and has no text."""

    sentence = "The document has no text that could be read."


class SwitchedOff(NotAllowed):
    """A setting has switched the action off."""

    sentence = "This action is switched off here."
