"""Evidence: what of the found documents the model sees, and whether it is enough to answer from."""
