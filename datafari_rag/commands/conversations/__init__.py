"""`datafari-rag conversations`: what administrators do with stored conversations."""
