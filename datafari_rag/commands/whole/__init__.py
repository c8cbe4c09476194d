"""Commands on whole documents: summarize, compare."""
