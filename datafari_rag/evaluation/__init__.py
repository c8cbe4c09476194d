"""Questions into tables and plots."""
