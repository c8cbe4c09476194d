"""LlamaIndex retriever over datafari_rag: the documents that one user may see."""

from llama_index_retrievers_datafari_rag.retriever import DatafariRetriever

__all__ = ["DatafariRetriever"]
