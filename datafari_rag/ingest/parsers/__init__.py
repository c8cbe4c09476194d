"""One parser a format: bytes in, text and title out."""
