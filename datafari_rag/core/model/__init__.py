"""What a model's reply means: formats, streams, time limits."""
