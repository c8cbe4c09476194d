"""`datafari-rag eval`: questions into tables and plots."""
