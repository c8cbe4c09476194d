"""The service attacked as a stranger would: every test counts what it tried and lists the holes it found."""
