"""Stored conversations of signed-in users: recalled and kept with an answer, listed, opened and deleted."""
