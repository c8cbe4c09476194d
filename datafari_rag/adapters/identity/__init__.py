"""Who is asking: header, signed token, demo cookie."""
