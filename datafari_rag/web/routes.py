"""Which dialect answers which path: one row each, and the test that tells two dialects of one path apart."""

from __future__ import annotations

from dataclasses import dataclass

from datafari_rag.protocols import ragapi
from datafari_rag.protocols.incoming import Incoming
from datafari_rag.web.answering import Row
from datafari_rag.web.encoding import NDJSON

SELECT_PATHS = ("/Datafari/rest/v2.0/search/select", "/search/select")


@dataclass(frozen=True, slots=True)
class Route:
    """Some paths, the methods and body types they take, and the rows that may serve them, the first that accepts."""

    name: str
    paths: tuple[str, ...]
    methods: tuple[str, ...]
    takes: frozenset[str]
    rows: tuple[Row, ...]

    def row_for(self, incoming: Incoming) -> Row | None:
        """Return the row that serves *incoming*; None where only a plain search is left."""
        return next((row for row in self.rows if row.accepts is None or row.accepts(incoming)), None)


RAGAPI = Row("ragapi", ragapi, NDJSON, ragapi.accepts)

ROUTES = (Route("select", SELECT_PATHS, ("GET", "POST"), frozenset({"form"}), (RAGAPI,)),)
