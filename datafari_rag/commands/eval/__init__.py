"""`datafari-rag eval`: questions of the user's, or whole sets."""
