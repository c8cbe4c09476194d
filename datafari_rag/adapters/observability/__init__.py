"""Logs, audit trail, traces."""
