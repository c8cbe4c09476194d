"""The contract as rows that are checked on a running service: `datafari-rag conformance URL`."""
