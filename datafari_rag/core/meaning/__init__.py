"""Search by meaning: vectors, what is known of a model, pieces of documents, and the fusion with words."""
