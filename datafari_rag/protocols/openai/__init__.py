"""OpenAI's API as its clients speak it: chat completions, responses, the list of models, the shape of errors."""
