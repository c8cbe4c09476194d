"""Texts into values, and what is said to those that do not fit."""

from __future__ import annotations

import pytest

from datafari_rag.core.settings.addresses import Tls, TlsByServer
from datafari_rag.core.settings.table import BY_KEY, Settings
from tests.settings import parsed, settings_with

TAKEN = [
    pytest.param("rag.enable.logs", "FALSE", False, id="a flag is read in any case"),
    pytest.param("retrieval.method", "rrf", "hybrid", id="Datafari's other methods are hybrid"),
    pytest.param("rag.maxFiles", " 5 ", 5, id="an integer, blanks around it left out"),
    pytest.param("rag.maxFiles", "", 8, id="nothing is the default"),
    pytest.param("rag.maxTokens", "", None, id="an optional integer may be empty"),
    pytest.param("llm.limits.breaker_failures", "0", 0, id="zero is not absence"),
    pytest.param("rag.temperature", "2", 2.0, id="a number may be written without a point"),
    pytest.param("rag.temperature", ".5", 0.5, id="a number may begin with its point"),
    pytest.param("rag.temperature", "1e-3", 0.001, id="a number may have an exponent"),
    pytest.param("rag.evidence.min", "auto", "auto", id="a word in place of a number"),
    pytest.param("rag.evidence.min", "0.5", 0.5, id="a number in place of the word"),
    pytest.param("rag.model", "", "", id="a text may be empty"),
    pytest.param("solr.handler", "/a/b", "/a/b", id="a handler is a path"),
    pytest.param("security.jwt.claims.tokens", "realm_access.roles", "realm_access.roles", id="a claim lies deeper"),
    pytest.param("audit.folder", "a/b", "/etc/rag/a/b", id="a relative path starts at the folder of the file"),
    pytest.param("audit.folder", "/a", "/a", id="an absolute path stays"),
    pytest.param("audit.folder", "", "", id="no path is no path"),
    pytest.param("security.admins", " b , a,,b", ("b", "a"), id="a list keeps its order and drops doubles"),
    pytest.param("security.admins", "", (), id="a list may be empty"),
    pytest.param("llm.fallback.tokens", "a,,a", ("a", "", "a"), id="a list of places keeps its gaps"),
    pytest.param(
        "tls", '{"llm": {"ca": "a.pem"}}', TlsByServer(llm=Tls(ca_file="/etc/rag/a.pem")), id="files of certificates"
    ),
    pytest.param("server.host", "[::1]", "[::1]", id="an address of IPv6"),
    pytest.param("security.jwt.jwks", "https://h/keys", "https://h/keys", id="keys at an address"),
    pytest.param("security.jwt.jwks", "keys.json", "/etc/rag/keys.json", id="keys beside the file"),
    pytest.param("rag.api.endpoint", "https://<HOST>:1/x", "https://<HOST>:1/x", id="a placeholder is only warned of"),
    pytest.param(
        "llm.fallback", "http://a/v1, builtin:extractive", ("http://a/v1", "builtin:extractive"), id="the built-in last"
    ),
    pytest.param("embeddings.endpoint", "onnx: models/bge", "onnx:/etc/rag/models/bge", id="a local model"),
    pytest.param("security.trusted.proxies", "10.1.2.3/8, ::1", ("10.0.0.0/8", "::1/128"), id="networks"),
    pytest.param(
        "server.hosts", "LocalHost, a:80,::1,[::1]:80,a:80", ("localhost", "a:80", "[::1]", "[::1]:80"), id="hosts"
    ),
    pytest.param(
        "server.cors.origins", "HTTPS://A.example/,http://b:81", ("https://a.example", "http://b:81"), id="two origins"
    ),
    pytest.param("solr.url", "http://a/solr/c, http://b/solr/c", "http://a/solr/c,http://b/solr/c", id="in turn"),
    pytest.param("solr.url", "zookeeper://z1:2181,z2/r#Files", "zookeeper://z1:2181,z2/r#Files", id="SolrCloud"),
    pytest.param("solr.url", "embedded:index", "embedded:/etc/rag/index", id="a relative embedded folder"),
    pytest.param(
        "openai.indexes",
        "default, hr = http://h/solr/hr , law=zookeeper://a:1,b:2/r#law,x",
        {"default": "", "hr": "http://h/solr/hr", "law": "zookeeper://a:1,b:2/r#law", "x": ""},
        id="commas inside an address",
    ),
]


@pytest.mark.parametrize(("key", "text", "value"), TAKEN)
def test_a_fitting_text_is_read(key: str, text: str, value: object) -> None:
    row = BY_KEY.get(key)
    assert row is not None
    assert row.read(text, "/etc/rag") == value


FLAGS = 'Valid values are "true" and "false".'
TEXTS = "Valid values are texts without control characters."
FILES = "Valid values are http(s) addresses and paths of files."
HOSTS = "Valid values are lists of HOST and HOST:PORT, such as localhost, search.example.org:8080 and [::1]."
KEYS = "Valid values are lists of keys of at least 16 characters without spaces, separated by commas."
HANDLERS = "Valid values are paths of request handlers such as /select."
ENDPOINTS = 'Valid values are lists of http(s) addresses, of which the last may be "builtin:extractive".'
ORIGINS = 'Valid values are lists of origins such as https://search.example.org, and "*".'
INDEXES = "Valid values are lists of NAME and NAME=SOLR-URL, each name once."
SOLR = (
    "Valid values are http(s)://HOST/solr/COLLECTION, several of them separated by commas, "
    "zookeeper://HOST:2181/CHROOT#COLLECTION and embedded:FOLDER."
)
EVIDENCE = '"auto" or a number between 0 and 1 is expected.'
BODY = "A JSON object without the keys model, messages, stream is expected."

REFUSED = [
    pytest.param("rag.enable.logs", "yes", FLAGS, id="yes is no flag"),
    pytest.param("security.mode", "", 'Valid values are "tokens", "plugin" and "none".', id="emptied security"),
    pytest.param("rag.maxFiles", "3.5", "An integer is expected.", id="a fraction is no integer"),
    pytest.param("rag.maxFiles", "٣", "An integer is expected.", id="digits of another script"),
    pytest.param("rag.maxFiles", "1001", "A number between 1 and 1000 is expected.", id="an integer too high"),
    pytest.param("rag.maxFiles", "9" * 5000, "A number between 1 and 1000 is expected.", id="no end of digits"),
    pytest.param("rag.temperature", "0,7", "A number between 0 and 2 is expected.", id="a comma for a point"),
    pytest.param("rag.temperature", "nan", "A number between 0 and 2 is expected.", id="not a number"),
    pytest.param("rag.evidence.min", "automatic", EVIDENCE, id="neither the word nor a number"),
    pytest.param("rag.model", "a\nb", TEXTS, id="a line end"),
    pytest.param("server.secret", "short", "Valid values are texts of at least 16 characters.", id="a short secret"),
    pytest.param("security.header", "X User", "Valid values are names of HTTP headers.", id="a blank in a header"),
    pytest.param(
        "security.jwt.header", "", "Valid values are lists of names of HTTP headers, separated by commas.", id="none"
    ),
    pytest.param("server.api.keys", "short", KEYS, id="a key that can be guessed"),
    pytest.param("solr.handler", "/../x", HANDLERS, id="a step up"),
    pytest.param("audit.folder", "a\tb", "Valid values are paths of files.", id="a tab in a path"),
    pytest.param(
        "solr.facets", "a b", "Valid values are lists of names of fields, separated by commas.", id="blanks in a field"
    ),
    *(
        pytest.param("server.public_url", text, "Valid values are http(s) addresses.", id=text)
        for text in ("ftp://h/", "http://", "http://h:99999/", "http://[::1/", "http://h/a b")
    ),
    pytest.param("security.jwt.jwks", "ldap://h", FILES, id="no such keys"),
    pytest.param(
        "rag.api.endpoint",
        "api.openai.com",
        'Valid values are http(s) addresses and "builtin:extractive".',
        id="no scheme",
    ),
    pytest.param("llm.fallback", "builtin:extractive,http://a/", ENDPOINTS, id="something after the last"),
    *(
        pytest.param(
            "embeddings.endpoint",
            text,
            "Valid values are http(s) addresses of /v1/embeddings and onnx:FOLDER.",
            id=repr(text),
        )
        for text in ("models/bge", "onnx:", "onnx: \x07", "ftp://x/", "http://")
    ),
    pytest.param(
        "security.trusted.proxies",
        "10.0.0.0/33",
        "Valid values are lists of IP networks such as 10.0.0.0/8.",
        id="no network",
    ),
    pytest.param("server.hosts", "http://a", HOSTS, id="an address is no host"),
    pytest.param("server.cors.origins", "https://a/x", ORIGINS, id="a path is no origin"),
    pytest.param("server.cors.origins", "*,https://a", ORIGINS, id="any and one"),
    *(
        pytest.param("solr.url", text, SOLR, id=text)
        for text in (
            *("http://h:8983/", "http://h/solr/c?q=1", "embedded:", "zookeeper://h:2181/solr", "zookeeper://h 1#c"),
            "http://h/solr/c,ftp://h/solr/c",
        )
    ),
    pytest.param("openai.indexes", "a=ftp://h", INDEXES, id="no search engine"),
    *(
        pytest.param("llm.body", text, BODY, id=text[:20])
        for text in ("[]", "{", "x", '{"model": "m"}', '{"messages": []}', '{"stream": true}', "[" * 100_000)
    ),
]


@pytest.mark.parametrize(("key", "text", "sentence"), REFUSED)
def test_another_text_is_told_what_was_wanted(key: str, text: str, sentence: str) -> None:
    settings, (problem,) = parsed({key: text})
    assert problem.sentence == f"Invalid value for {key} property. {sentence}"
    assert settings == Settings()


@pytest.mark.parametrize(
    "text",
    [
        '{"solr": "ca.pem"}',
        '{"solr": {"ca": 1}}',
        '{"solr": {"key_file": "a"}}',
        '{"slr": {}}',
        '{"llm": {"verify": 2}}',
    ],
)
def test_what_are_no_certificates_is_refused(text: str) -> None:
    assert [problem.key for problem in parsed({"tls": text})[1]] == ["tls"]


NO_FIELDS = ['{"title": "a b"}', '{"title": 3}', '{"titel": "t"}', '{"title": ""}', r'{"title": "t\n"}']


@pytest.mark.parametrize("text", NO_FIELDS)
def test_what_are_no_fields_is_refused(text: str) -> None:
    assert [problem.key for problem in parsed({"solr.fields": text})[1]] == ["solr.fields"]


MESSAGES = [
    pytest.param("rag.maxFiles", "many", 'property: "many". An integer is expected.', id="the value is repeated"),
    pytest.param("rag.maxFiles", "3 # three", "An integer is expected. Put the comment on its own line.", id="comment"),
    pytest.param("rag.operator", '"AND"', 'are "AND" and "OR". Leave out the quotation marks.', id="quotation marks"),
    pytest.param("audit.folder", "C:\temp", "Write a backslash twice.", id="a lost backslash"),
    pytest.param("rag.operator", "x" * 500, f'"{"x" * 80}…"', id="a long value is cut"),
    pytest.param("rag.api.endpoint", "ftp://a:b@h/", '"ftp://***@h/"', id="a password is hidden"),
]


@pytest.mark.parametrize(("key", "text", "part"), MESSAGES)
def test_administrators_see_the_value(key: str, text: str, part: str) -> None:
    _, (problem,) = parsed({key: text})
    assert part in problem.message
    assert problem.stops


def test_a_secret_is_in_no_message() -> None:
    _, (problem,) = parsed({"server.secret": "hunter2"})
    assert "hunter2" not in problem.message + problem.sentence


def test_good_values_are_taken_beside_bad_ones() -> None:
    settings, problems = parsed({"rag.maxFiles": " 7 ", "rag.operator": "XOR", "what.ever": "1", "rag.model": ""})
    assert settings == settings_with(rag_max_files=7, rag_model="")
    assert [problem.key for problem in problems] == ["rag.operator"]


def test_without_a_length_a_quarter_of_the_window_is_kept_for_the_answer() -> None:
    settings, problems = parsed({"rag.maxTokens": "", "rag.temperature": "", "llm.context.window": "8000"})
    assert (settings.rag.max_tokens, settings.rag.temperature, settings.window.answer) == (None, None, 2000)
    assert (Settings().rag.max_tokens, Settings().rag.temperature, problems) == (250, 0.7, ())


JWT = {"security.identity": "jwt"}

CONTRADICTIONS = [
    pytest.param({"rag.maxTokens": "20000"}, "rag.maxTokens", id="an answer longer than the window"),
    pytest.param(
        {"rag.maxTokens": "4000", "llm.context.window": "4096"}, "rag.maxTokens", id="an answer that fills the window"
    ),
    pytest.param(JWT, "security.identity", id="jwt without a key"),
    pytest.param({"security.tokens": "claims"}, "security.tokens", id="claims without a token"),
    pytest.param({"security.tokens": "authority"}, "security.tokens", id="an authority without address"),
    pytest.param(
        {"security.mode": "plugin", "solr.url": "embedded:x"}, "security.mode", id="the plugin on the embedded index"
    ),
    pytest.param({"solr.facets": "source,deny_token_share"}, "solr.facets", id="rights among the facets"),
    pytest.param(
        {"solr.facets": "acl", "solr.fields": '{"allow_token_share": "acl"}'},
        "solr.facets",
        id="mapped rights among the facets",
    ),
    pytest.param(
        {"solr.facets": "language", "solr.fields": '{"deny_token_share": "source"}'},
        "solr.fields",
        id="a category of access rights",
    ),
    *(
        pytest.param(
            {"security.identity": "demo", "server.host": host}, "security.identity", id=f"demo users on {host}"
        )
        for host in ("0.0.0.0", "example.org")
    ),
    pytest.param({"llm.fallback.tokens": "a"}, "llm.fallback.tokens", id="a token without an endpoint"),
    pytest.param({"limits.tokens": "5"}, "limits.tokens", id="a limit where nothing is counted"),
]

AGREEMENTS = [
    pytest.param(JWT | {"security.jwt.jwks": "k", "security.tokens": "claims"}, id="jwt with keys and claims"),
    pytest.param(JWT | {"security.jwt.secret": "s"}, id="jwt with a secret"),
    pytest.param({"security.tokens": "authority", "security.authority.url": "http://a/x"}, id="an authority"),
    pytest.param(
        {"security.tokens": "authority", "security.mode": "plugin"}, id="the plugin needs no authority in the service"
    ),
    *(
        pytest.param({"security.identity": "demo", "server.host": host}, id=f"demo users on {host}")
        for host in ("127.0.0.1", "localhost", "[::1]")
    ),
]


@pytest.mark.parametrize(("values", "key"), CONTRADICTIONS)
def test_what_contradicts_is_told(values: dict[str, str], key: str) -> None:
    _, problems = parsed(values)
    assert [problem.key for problem in problems] == [key]
    assert problems[0].stops and problems[0].sentence


@pytest.mark.parametrize("values", AGREEMENTS)
def test_what_agrees_is_not(values: dict[str, str]) -> None:
    assert parsed(values)[1] == ()
