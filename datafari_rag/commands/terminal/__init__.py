"""What several commands write to a terminal."""
