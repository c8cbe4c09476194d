"""The search engine in the process (tantivy): schema, queries, retriever, writer."""
