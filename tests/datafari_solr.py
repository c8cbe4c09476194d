"""
A collection in the shape of Datafari's FileShare: its field names, kinds of types and parameters of its handler.

Written for the tests, with the traits that make it harder than our own schema: types that cut words at hyphens, digits
and case, a title that is not indexed, values in small letters, boosts of thousands beside weights of hundreds, the
elevator and the spell checker as last components, JSON as text/plain.
"""

from __future__ import annotations

from pathlib import Path

DATAFARI = "Datafari"
"""The collection's name."""

ELEVATED = "bereavement leave policy"
"""The question for which an administrator has put the document `elevated` first."""

_WORDS = """
      <tokenizer class="solr.WhitespaceTokenizerFactory"/>
      <filter class="solr.WordDelimiterGraphFilterFactory" generateWordParts="1" generateNumberParts="1"
              catenateWords="{catenated}" catenateNumbers="{catenated}" splitOnCaseChange="1"/>
      {flattened}
      <filter class="solr.LowerCaseFilterFactory"/>
      {stemmed}"""


def _language(name: str, stemmed: str, *, phrases: bool) -> str:
    flattened = '<filter class="solr.FlattenGraphFilterFactory"/>'
    index = _WORDS.format(catenated=1, flattened=flattened, stemmed=stemmed)
    query = _WORDS.format(catenated=0, flattened="", stemmed=stemmed)
    return f"""
  <fieldType name="{name}" class="solr.TextField" positionIncrementGap="100"
             autoGeneratePhraseQueries="{str(phrases).lower()}">
    <analyzer type="index">{index}
    </analyzer>
    <analyzer type="query">{query}
    </analyzer>
  </fieldType>"""


_TYPES = "".join(
    (
        _language("text_en", '<filter class="solr.PorterStemFilterFactory"/>', phrases=True),
        _language("text_fr", '<filter class="solr.FrenchLightStemFilterFactory"/>', phrases=False),
        _language("text_de", '<filter class="solr.GermanLightStemFilterFactory"/>', phrases=False),
        _language("text_es", '<filter class="solr.SpanishLightStemFilterFactory"/>', phrases=False),
    )
)

_RIGHTS = "".join(
    f"""
  <field name="{verb}_token_{level}" type="string" multiValued="true" required="true" default="__nosecurity__"/>"""
    for level in ("document", "parent", "share")
    for verb in ("allow", "deny")
)

_SEARCHED = "".join(
    f"""
  <field name="content_{code}" type="text_{code}" multiValued="true"/>
  <field name="title_{code}" type="text_{code}" multiValued="true"/>"""
    for code in ("en", "fr", "de", "es")
)

_SCHEMA = f"""<schema name="datafari" version="1.6">
  <uniqueKey>id</uniqueKey>
  <field name="_version_" type="plong" indexed="false"/>
  <field name="id" type="string" required="true"/>
  <field name="docId" type="string"/>
  <field name="title" type="text_general" indexed="false" multiValued="true"/>{_SEARCHED}
  <field name="exactTitle" type="text_nostem" multiValued="true"/>
  <field name="exactContent" type="text_nostem" multiValued="true"/>
  <field name="preview_content" type="string" indexed="false" docValues="false" multiValued="true"/>
  <field name="url" type="string" indexed="false" docValues="false"/>
  <field name="url_search" type="text_en" stored="false" multiValued="true"/>
  <field name="urlHierarchy" type="string" multiValued="true"/>
  <field name="extension" type="lowerCasedString"/>
  <field name="mime" type="lowerCasedString"/>
  <field name="language" type="string"/>
  <field name="source" type="lowerCasedString"/>
  <field name="repo_source" type="lowerCasedString"/>
  <field name="author" type="lowerCasedString" multiValued="true"/>
  <field name="last_modified" type="pdate" multiValued="true" default="NOW"/>
  <field name="creation_date" type="pdate" multiValued="true" default="1970-09-01T00:00:00Z"/>
  <field name="crawl_date" type="pdate"/>
  <field name="original_file_size" type="plong"/>
  <field name="signature" type="string"/>
  <field name="emptied" type="boolean" default="false"/>
  <field name="truncated" type="boolean" default="false"/>
  <field name="llm_summary" type="string" indexed="false" docValues="false"/>
  <field name="llm_categories" type="string" multiValued="true"/>
  <field name="spell" type="text_general" stored="false" multiValued="true"/>{_RIGHTS}
  <copyField source="content_*" dest="spell"/>
  <copyField source="url" dest="url_search"/>
  <fieldType name="string" class="solr.StrField" sortMissingLast="true" docValues="true"/>
  <fieldType name="boolean" class="solr.BoolField" sortMissingLast="true"/>
  <fieldType name="plong" class="solr.LongPointField" docValues="true"/>
  <fieldType name="pdate" class="solr.DatePointField" docValues="true"/>
  <fieldType name="lowerCasedString" class="solr.TextField" sortMissingLast="true" omitNorms="true">
    <analyzer>
      <tokenizer class="solr.KeywordTokenizerFactory"/>
      <filter class="solr.LowerCaseFilterFactory"/>
    </analyzer>
  </fieldType>
  <fieldType name="text_general" class="solr.TextField" positionIncrementGap="100">
    <analyzer>
      <tokenizer class="solr.StandardTokenizerFactory"/>
      <filter class="solr.LowerCaseFilterFactory"/>
    </analyzer>
  </fieldType>
  <fieldType name="text_nostem" class="solr.TextField" positionIncrementGap="100">
    <analyzer>
      <tokenizer class="solr.WhitespaceTokenizerFactory"/>
      <filter class="solr.LowerCaseFilterFactory"/>
      <filter class="solr.ASCIIFoldingFilterFactory" preserveOriginal="true"/>
    </analyzer>
  </fieldType>{_TYPES}
</schema>"""

_HANDLER = """
    <lst name="defaults">
      <str name="echoParams">explicit</str>
      <str name="wt">json</str>
      <str name="defType">edismax</str>
      <str name="qf">exactContent^500 exactTitle^700 title_en^250 title_fr^250 content_en^100 content_fr^100
        url_search^10</str>
      <str name="pf">exactContent^5000 title_en^2500 content_en^1000 content_fr^1000</str>
      <str name="q.op">AND</str>
      <str name="tie">0.1</str>
      <str name="df">exactContent</str>
      <int name="rows">10</int>
      <str name="hl">on</str>
      <str name="hl.method">unified</str>
      <str name="hl.fl">content_en content_fr exactContent</str>
      <str name="hl.bs.type">WORD</str>
      <str name="hl.encoder">html</str>
      <int name="hl.maxAnalyzedChars">51200</int>
      <str name="hl.tag.pre">&lt;span class="em"&gt;</str>
      <str name="hl.tag.post">&lt;/span&gt;</str>
      <str name="spellcheck">on</str>
      <str name="spellcheck.dictionary">default</str>
      <str name="spellcheck.collate">true</str>
    </lst>"""

_LAST = """
    <arr name="last-components"><str>spellcheck</str><str>elevator</str></arr>"""

_CONFIG = f"""<config>
  <luceneMatchVersion>9.11</luceneMatchVersion>
  <schemaFactory class="ClassicIndexSchemaFactory"/>
  <updateHandler class="solr.DirectUpdateHandler2">
    <updateLog><str name="dir">${{solr.ulog.dir:}}</str></updateLog>
  </updateHandler>
  <query><maxBooleanClauses>1024</maxBooleanClauses></query>
  <searchComponent name="spellcheck" class="solr.SpellCheckComponent">
    <lst name="spellchecker">
      <str name="name">default</str>
      <str name="field">spell</str>
      <str name="classname">solr.DirectSolrSpellChecker</str>
    </lst>
  </searchComponent>
  <searchComponent name="elevator" class="solr.QueryElevationComponent">
    <str name="queryFieldType">string</str>
    <str name="config-file">elevate.xml</str>
  </searchComponent>
  <!-- In the place of ManifoldCF's, which is no part of Solr: without any user it lets nothing through. -->
  <queryParser name="manifoldCFSecurity" class="solr.BoolQParserPlugin"/>
  <requestHandler name="/select" class="solr.SearchHandler" useParams="mySearch">{_HANDLER}{_LAST}
  </requestHandler>
  <requestHandler name="/secured" class="solr.SearchHandler">{_HANDLER}
    <lst name="appends"><str name="fq">{{!manifoldCFSecurity}}</str></lst>{_LAST}
  </requestHandler>
  <requestHandler name="/initial" class="solr.SearchHandler"/>
  <initParams path="/initial">
    <lst name="defaults"><str name="facet.matches">x</str><str name="bq">language:fr</str></lst>
    <lst name="appends"><str name="fq">{{!manifoldCFSecurity}}</str></lst>
    <lst name="invariants"><str name="tie">0.5</str><str name="start">5</str></lst>
  </initParams>
  <queryResponseWriter name="json" class="solr.JSONResponseWriter">
    <str name="content-type">text/plain; charset=UTF-8</str>
  </queryResponseWriter>
</config>"""

CONFIG_SET = {
    "schema.xml": _SCHEMA,
    "solrconfig.xml": _CONFIG,
    "elevate.xml": f'<elevate><query text="{ELEVATED}"><doc id="elevated"/></query></elevate>',
}
"""File name → content."""


def put_datafari(folder: Path) -> None:
    """Put the collection beside ours in a Solr that is not started yet."""
    conf = folder / "node1" / DATAFARI / "conf"
    conf.mkdir(parents=True)
    for name, body in CONFIG_SET.items():
        (conf / name).write_text(body)
    (conf.parent / "core.properties").write_text(f"name={DATAFARI}\n")
