"""Secure plain search: `search/select` without `action` returns Solr's JSON, errors as Datafari's search does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import BadRequest, QueryTooLong, RagError
from datafari_rag.core.proof.links import is_target, target_of
from datafari_rag.core.query.plan import ReplyRoom
from datafari_rag.core.query.select_parameters import browse_of, merged, read
from datafari_rag.core.search_request import Browse, Fields
from datafari_rag.core.settings.table import RagSettings, Settings, SolrSettings, fields_of
from datafari_rag.core.text.cleaning import is_unicode, without_invisible
from datafari_rag.core.text.language import detect
from datafari_rag.protocols.request import Incoming

ACTIONS = frozenset({"", "search"})
"""What `action` may be besides rag; any other is a bad request (contract §2)."""


def parse(incoming: Incoming, settings: Settings) -> tuple[Browse, tuple[str, ...]]:
    """
    Read a plain search out of query and form, and the names of what is ignored because it does not fit.

    Raises:
        BadRequest: an unknown action, or words that are no text.
        QueryTooLong: over 4000 characters.
    """
    own_names = fields_of(settings.solr.fields).acl.values()
    parameters = read(merged(incoming.query, incoming.form), facets=settings.solr.facets, acl_fields=own_names)
    if (parameters.action or "").strip().lower() not in ACTIONS:
        raise BadRequest("The parameter action must be rag, search or absent.")
    text = parameters.text or ""
    if len(text) > MAX_QUESTION_CHARS:
        raise QueryTooLong
    if not is_unicode(text):
        raise BadRequest("The parameter q is not valid Unicode text.")
    # The page sends the language of its texts as `lang`: it only decides if the search has no clear language.
    language = detect(text) or parameters.language or ""
    return replace(browse_of(parameters), language=language), parameters.ignored


def reply(
    page: Mapping[str, object], search: Browse, solr: SolrSettings, size_of: Callable[[object], int], root: str = ""
) -> dict[str, object]:
    """
    Return Solr's own JSON *page*, with titles and addresses of its documents as they may be shown and followed.

    *size_of* gives the bytes of a value on the wire: of long fields only as many come as there is room, and `truncated`
    names the others by the id of their document. The header has the parameters of *search* that Datafari's page reads
    there. Paths of our own pages are below *root*.
    """
    params = {"q": search.text or "*:*", "rows": str(search.rows), "start": str(search.start)}
    header = page.get("responseHeader")
    page = {**page, "responseHeader": {**(header if isinstance(header, Mapping) else {}), "params": params}}
    response = page.get("response")
    rows = response.get("docs") if isinstance(response, Mapping) else None
    if not isinstance(response, Mapping) or not isinstance(rows, Sequence):
        return dict(page)
    fields = fields_of(solr.fields)
    room = ReplyRoom(size_of)
    docs = [room.fitted(str(row.get(fields.id, "")), _row(row, fields, root)) for row in rows]
    earlier = page.get("truncated")
    truncated = {**(earlier if isinstance(earlier, Mapping) else {}), **room.truncated}
    whole = {**page, "response": {**response, "docs": docs}}
    return {**whole, "truncated": truncated} if truncated else whole


def _row(row: Mapping[str, object], fields: Fields, root: str) -> dict[str, object]:
    own_page = target_of(Document(str(row.get(fields.id, "")), ""), root)
    renderings: dict[str, Callable[[str], str]] = {
        fields.title: without_invisible,
        fields.url: lambda url: url if is_target(url) else own_page,
    }
    return {name: _each(value, renderings[name]) if name in renderings else value for name, value in row.items()}


def _each(value: object, change: Callable[[str], str]) -> object:
    """Return a stored value changed, one text or a list of them; any other stays."""
    if isinstance(value, str):
        return change(value)
    return [change(text) if isinstance(text, str) else text for text in value] if isinstance(value, list) else value


def failure(error: RagError, rag: RagSettings) -> tuple[int, dict[str, object]]:
    """Return `{"error": {"code", "msg"}}` with the code as HTTP status."""
    return error.code, {"error": {"code": error.code, "msg": error.reason}}
