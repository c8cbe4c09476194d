"""The settings file: reading, watching, editing."""
