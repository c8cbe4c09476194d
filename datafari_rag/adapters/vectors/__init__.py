"""Embedding models: an OpenAI-compatible endpoint, or a local ONNX model."""
