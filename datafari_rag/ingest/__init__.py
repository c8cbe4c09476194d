"""Files into documents, one parser a file."""
