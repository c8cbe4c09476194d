"""Which tokens a user has: file, authority service, claims."""
