"""LangChain retriever over datafari_rag: the documents that one user may see."""

from langchain_datafari_rag.retriever import DatafariRetriever

__all__ = ["DatafariRetriever"]
