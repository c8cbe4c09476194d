"""The search engine Solr: client, nodes, retriever, writer."""
