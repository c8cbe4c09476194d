"""A model server that behaves as the model name says."""
