"""`datafari-rag model`: embedding models out of package registries."""
