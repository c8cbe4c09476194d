"""
Work on whole documents: a search alone, the summary of one document, the synthesis of several.

    works.py      the works, one row each
    run.py        one work on its way: documents read as its user, prompts, the model
    summary.py    one document, piece by piece
    synthesis.py  several documents in one answer

Documents are read through the pipeline, which attaches the user's filter; nothing here searches of itself. What a work
costs is known before the model is called, and its calls are bounded. As the pipeline it knows ports alone.
"""
