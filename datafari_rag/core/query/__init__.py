"""From a request to a search: parameters, conversation, plan."""
