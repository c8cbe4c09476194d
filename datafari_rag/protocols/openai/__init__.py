"""OpenAI's API as its clients use it: chat completions, responses, the list of models, the shape of errors."""
