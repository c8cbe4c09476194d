"""HTTP as a client: what holds for every request to search engine, model, authority and key provider."""
