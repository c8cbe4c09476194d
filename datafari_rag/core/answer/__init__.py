"""The prompt, and what happens to the model's text before a caller sees it."""
