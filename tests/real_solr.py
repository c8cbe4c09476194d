"""A real Solr for tests, started by the project's own code and ended with the test run, whatever happens to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from datafari_rag.adapters.solr.client import Node
from datafari_rag.adapters.solr.factory import connection_of, retriever_for, schema_of
from datafari_rag.adapters.solr.writer import solr_document
from datafari_rag_trials.solr import process as solr_process
from datafari_rag_trials.solr.jars import CannotRunSolr, jars
from datafari_rag_trials.solr.process import Running
from tests.required import missing, program
from tests.settings import settings_with


def require_tools() -> None:
    """Skip without Java, Maven, or what Maven fetches; on CI, fail."""
    for name in ("java", "mvn"):
        program(name, ".ci/setup test")
    try:
        jars(lambda line: None)
    except CannotRunSolr:
        missing("Solr from Maven Central", ".ci/setup test")


@contextmanager
def running(folder: Path, *, nodes: int = 0) -> Iterator[Running]:
    """Run a Solr in *folder* as long as the block; it ends with the test run, whatever happens to that."""
    require_tools()
    try:
        yield solr_process.started(folder, nodes=nodes, owner=os.getpid())
    finally:
        solr_process.stopped(folder)


class Collection:
    """One collection to fill and to search: the same two verbs for every engine's port suite."""

    def __init__(self, url: str) -> None:
        self.settings = settings_with(solr_url=url)
        self.retriever = retriever_for(self.settings)
        # Filling takes a busy machine long, and is not what is tested.
        self._node = Node(url, replace(connection_of(self.settings), timeout_s=60.0))

    def load(self, documents: Sequence[Mapping[str, object]]) -> None:
        """Replace all that is there; soft commits, because a hard one waits for the disk."""
        schema = schema_of(self.settings.solr)
        self._post({"delete": {"query": "*:*"}})
        self._post([solr_document(document, schema) for document in documents])
        self._post({"commit": {"softCommit": True, "waitSearcher": True}})

    def _post(self, body: Mapping[str, object] | Sequence[object]) -> None:
        self._node.post("update", body)


OTHER = "Archive"
"""A collection with a schema of its own: one title, one text, rights under its own names and without a default."""

_OTHER_SCHEMA = """<schema name="archive" version="1.7">
  <uniqueKey>key</uniqueKey>
  <field name="key" type="string"/>
  <field name="dc_title" type="text" multiValued="true"/>
  <field name="body" type="text"/>
  <field name="link" type="string"/>
  <field name="size" type="plong"/>
  <dynamicField name="acl_*" type="string" multiValued="true"/>
  <fieldType name="string" class="solr.StrField" indexed="true" stored="true"/>
  <fieldType name="plong" class="solr.LongPointField" docValues="true"/>
  <fieldType name="text" class="solr.TextField" indexed="true" stored="true">
    <analyzer>
      <tokenizer class="solr.WhitespaceTokenizerFactory"/>
      <filter class="solr.LowerCaseFilterFactory"/>
    </analyzer>
  </fieldType>
</schema>"""

_OTHER_CONFIG = """<config>
  <luceneMatchVersion>9.12.3</luceneMatchVersion>
  <schemaFactory class="ManagedIndexSchemaFactory"><bool name="mutable">true</bool></schemaFactory>
  <requestHandler name="/find" class="solr.SearchHandler">
    <lst name="defaults"><str name="df">body</str><str name="echoParams">all</str></lst>
  </requestHandler>
  <requestHandler name="/select" class="solr.SearchHandler"/>
  <requestHandler name="/expanding" class="solr.SearchHandler">
    <lst name="invariants"><str name="expandMacros">true</str></lst>
  </requestHandler>
</config>"""


CHUNKS = "Chunks"
"""A collection of passages as Datafari fills one: no places, no versions, no marks of a model."""

_CHUNKS_SCHEMA = """<schema name="chunks" version="1.7">
  <uniqueKey>id</uniqueKey>
  <field name="id" type="string"/>
  <field name="parent_doc" type="string"/>
  <field name="chunk_index" type="plong"/>
  <field name="embedded_content" type="text"/>
  <field name="vector_4" type="vector"/>
  <dynamicField name="allow_token_*" type="string" multiValued="true"/>
  <dynamicField name="deny_token_*" type="string" multiValued="true"/>
  <fieldType name="string" class="solr.StrField" indexed="true" stored="true" docValues="true"/>
  <fieldType name="plong" class="solr.LongPointField" docValues="true"/>
  <fieldType name="vector" class="solr.DenseVectorField" vectorDimension="4" similarityFunction="cosine"/>
  <fieldType name="text" class="solr.TextField" indexed="true" stored="true">
    <analyzer><tokenizer class="solr.WhitespaceTokenizerFactory"/></analyzer>
  </fieldType>
</schema>"""


def put_other_collection(folder: Path) -> None:
    """Put the collections `OTHER` and `CHUNKS` beside ours in a Solr that is not started yet."""
    for name, schema in ((OTHER, _OTHER_SCHEMA), (CHUNKS, _CHUNKS_SCHEMA)):
        conf = folder / "node1" / name / "conf"
        conf.mkdir(parents=True)
        (conf / "schema.xml").write_text(schema)
        (conf / "solrconfig.xml").write_text(_OTHER_CONFIG)
        (conf.parent / "core.properties").write_text(f"name={name}\n")
