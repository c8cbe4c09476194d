"""Marks in an answer, and the proof of each in the stored text."""
