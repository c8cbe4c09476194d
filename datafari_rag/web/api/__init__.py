"""The API's routes: answers, search, models, documents, OpenAPI."""
