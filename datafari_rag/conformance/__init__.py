"""The contract as rows that are asked of a running service: `datafari-rag conformance URL`."""
