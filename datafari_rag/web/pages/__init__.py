"""The pages: search, results, documents, demo."""
