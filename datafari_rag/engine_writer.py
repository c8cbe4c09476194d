"""What puts documents into the search engine of the settings; of the engines only the one in use is imported."""

from __future__ import annotations

from pathlib import Path

from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Writer


def writer_for(settings: Settings, *, has_vectors: bool = True) -> Writer:
    """
    Return what puts documents into the search engine of `solr.url`, with vectors where `embeddings.endpoint` is set.

    Without *has_vectors* no model is needed: for what is only removed.

    Raises:
        SearchUnavailable: the embedded index is being written to, damaged, or of another version.
        EmbeddingsUnavailable, EmbeddingsGarbled: the embedding model cannot be used.
    """
    # `demo FOLDER` reads files beside a server that starts: each library that it does not need is left alone.
    if not settings.solr.url.startswith(EMBEDDED):
        from datafari_rag.adapters.solr.factory import writer_for as solr_writer_for

        return solr_writer_for(settings)
    from datafari_rag.adapters.embedded.writer import EmbeddedWriter

    place = Path(settings.solr.url.removeprefix(EMBEDDED))
    if not settings.embeddings.endpoint or not has_vectors:
        return EmbeddedWriter(place)
    from datafari_rag.adapters.vectors.factory import NEEDS_EXTRA, embedder_for
    from datafari_rag.core.errors import EmbeddingsUnavailable
    from datafari_rag.ingest.embedding import EmbeddingWriter

    try:
        # What keeps the vectors, wherever they are made: looked for before the first file is read.
        import datafari_rag.adapters.embedded.vectors  # noqa: F401
    except ImportError as error:
        raise EmbeddingsUnavailable(NEEDS_EXTRA) from error
    embedder, plain = embedder_for(settings), EmbeddedWriter(place)
    return plain if embedder is None else EmbeddingWriter(plain, embedder)
