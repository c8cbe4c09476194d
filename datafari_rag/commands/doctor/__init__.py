"""`datafari-rag doctor`: what the search engine, the rights and the model of an installation do."""
