"""The user of a request: header, signed token, demo cookie."""
