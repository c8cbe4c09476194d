"""Solr's parameters, schema and replies as values; nothing here sends a request."""
