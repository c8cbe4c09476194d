"""A real Solr for trials, started from Maven artifacts."""
