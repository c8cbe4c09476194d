"""The settings table: every key with its type, default, help and check, with the code around it."""
