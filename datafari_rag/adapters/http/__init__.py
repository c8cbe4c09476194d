"""HTTP as every adapter uses it: sessions, TLS, time limits."""
