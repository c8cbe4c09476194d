"""`datafari-rag demo`: the command, and the index that it serves."""
