from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.conversation_file import FILE, ConversationFile
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.usage_file import FILE as USAGE_FILE
from datafari_rag.commands.doctor import doctor
from datafari_rag.commands.terminal import program
from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.answer.conversations import ConversationLimits
from tests.adapters.model.test_endpoint_forms import OPENAI
from tests.required import library
from tests.support.server import Asked, Reply, model_server, serving
from tests.tiny_model import tiny_model

NAMES = ("id", "title", "url", "exactContent", "content_en", "title_en", "exactTitle", "preview_content")
MORE = ("language", "last_modified", "title_sort", "extension", "source", *ACL_FIELDS)
GOOD_MODEL = json.dumps({"choices": [{"message": {"content": "OK"}, "finish_reason": "stop"}]}).encode()


def examined(folder: Path, *lines: str, more: tuple[str, ...] = ()) -> Result:
    conf = folder / "rag.properties"
    conf.write_text("\n".join(("rag.api.endpoint=builtin:extractive", *lines)))
    conf.chmod(0o600)
    return CliRunner().invoke(doctor, ["--conf", str(conf), *more])


def solr(missing: str = "", **odd: Reply) -> Callable[[Asked], Reply]:
    """Answer as a Solr whose collection lacks the field *missing*; *odd* names what is answered otherwise."""
    fields = [
        {"name": name, "type": "s", "indexed": True, "stored": True} for name in (*NAMES, *MORE) if name != missing
    ]

    def answer(asked: Asked) -> Reply:
        what = asked.path.rpartition("/")[2]
        if what in odd:
            return odd[what]
        bodies: dict[str, object] = {
            "schema": {"schema": {"fields": fields}},
            "fields": {"fields": fields},
            "requestHandler": {"config": {}},
        }
        lacks = any(query.startswith("-") for query in asked.query.get("fq", []))
        found = {"response": {"numFound": 0 if lacks else 12, "docs": []}}
        return Reply(json.dumps(bodies.get(what, found)).encode())

    return answer


def test_a_good_collection_has_no_problem(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text('{"ann": ["staff"]}')
    with serving(solr()) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs", "security.tokens.file=users.json")

    assert said.exit_code == 0, said.output
    assert "PROBLEM" not in said.output
    for line in (
        "OK      search engine: Solr answers (handler /select)",
        "OK      documents: 12 in the collection",
        "OK      field exactContent: exists",
        "OK      field deny_token_share: exists in every document",
        "OK      source of rights: works",
        "OK      model (builtin:extractive): answers",
    ):
        assert line in said.output


def test_what_check_says_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = f"solr.url=embedded:{tmp_path / 'index'}"
    said = examined(tmp_path, index, "rag.maxToken=9", more=("--no-model",))

    assert "HINT    settings: " in said.output
    assert said.output.count(":3: warning: ") == 1
    assert caplog.records == []


def test_a_missing_field_is_a_problem_with_what_to_do(tmp_path: Path) -> None:
    with serving(solr(missing="deny_token_share")) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs", more=("--no-model",))

    assert said.exit_code == 1
    assert "PROBLEM field deny_token_share: is missing" in said.output
    assert "-> Add it with the default __nosecurity__" in said.output
    assert "model" not in said.output


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "Set solr.user and solr.password"),
        (403, "may not search"),
        (404, "Check the collection in solr.url"),
        (400, "edismax"),
        (302, "redirects"),
        (500, "Solr failed: see its log"),
    ],
)
def test_a_solr_that_refuses_gets_its_own_advice(tmp_path: Path, status: int, advice: str) -> None:
    with serving(solr(select=Reply(b"", status))) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs")

    assert said.exit_code == 1
    assert f"answered {status}" in said.output
    assert advice in said.output


def test_a_wrong_core_names_those_that_exist(tmp_path: Path) -> None:
    gone = Reply(b"", 404)
    names = {"collections": Reply(b"", 400), "cores": Reply(b'{"status": {"FileShare": {}, "Statistics": {}}}')}
    with serving(solr(select=gone, **names)) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/Fileshare")

    assert "Check the collection in solr.url" in said.output
    assert "this Solr has: FileShare, Statistics\n" in said.output


@pytest.mark.parametrize(
    ("url", "why"),
    [("http://no-such-host.invalid:8983", "no host has this name"), ("http://127.0.0.1:1", "connection refused")],
)
def test_why_nothing_answers_is_said_in_words(tmp_path: Path, url: str, why: str) -> None:
    said = examined(tmp_path, f"solr.url={url}/solr/docs", more=("--no-model",))

    assert why in said.output
    assert "Error" not in said.output


def test_something_else_than_solr_is_recognised(tmp_path: Path) -> None:
    with serving(solr(select=Reply(b"<html>hello</html>"))) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs")

    assert "The server at this address is not Solr" in said.output


def test_a_solr_that_says_nothing_of_itself_is_a_hint(tmp_path: Path) -> None:
    shut = Reply(b"", 403)
    with serving(solr(schema=shut, fields=shut, requestHandler=shut)) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs")

    assert said.exit_code == 0
    assert "HINT    collection: Solr does not return its schema" in said.output


def test_a_component_that_filters_too_is_a_problem(tmp_path: Path) -> None:
    handler = Reply(b'{"config": {"requestHandler": {"/select": {"appends": {"fq": "{!manifoldCFSecurity}"}}}}}')
    with serving(solr(requestHandler=handler)) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs")
        in_plugin_mode = examined(tmp_path, f"solr.url={loopback.url}/solr/docs", "security.mode=plugin")

    assert "PROBLEM rights component: the handler filters by itself" in said.output
    assert "OK      rights component: the handler has the ManifoldCF component" in in_plugin_mode.output


def test_a_certificate_that_is_not_trusted_has_its_own_advice(tmp_path: Path) -> None:
    library("cryptography.x509", "make .venv/.dev")
    from tests.adapters.test_http_tls import certificate

    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with serving(solr(), context) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs")
        trusted = examined(tmp_path, f"solr.url={loopback.url}/solr/docs", f'tls={{"solr": {{"ca": "{cert}"}}}}')

    assert said.exit_code == 1
    assert "set ca of solr in tls to its certificate authority" in said.output
    assert "OK      search engine: Solr answers" in trusted.output


def test_nobody_there_is_a_problem(tmp_path: Path) -> None:
    said = examined(
        tmp_path,
        "solr.url=http://127.0.0.1:1/solr/docs",
        "security.tokens.file=absent.json",
        "rag.api.endpoint=http://127.0.0.1:1/v1/chat/completions",
        "llm.limits.retries=0",
    )

    assert said.exit_code == 1
    assert "Is Solr running" in said.output
    assert "PROBLEM source of rights" in said.output
    assert "PROBLEM model (127.0.0.1)" in said.output
    assert "Traceback" not in said.output


def test_an_embedded_index_is_examined_too(tmp_path: Path) -> None:
    absent = examined(tmp_path, "solr.url=embedded:index")
    writer = EmbeddedWriter(tmp_path / "index")
    writer.add([{"id": "a", "exactContent": "x"}])
    writer.commit()
    writer.close()
    there = examined(tmp_path, "solr.url=embedded:index")

    assert absent.exit_code == 1
    assert f"Create it: `{program()} index PATH --conf {tmp_path / 'rag.properties'}`" in absent.output
    assert (there.exit_code, "OK      search engine: the embedded index answers" in there.output) == (0, True)


def test_settings_that_cannot_be_understood_are_said(tmp_path: Path) -> None:
    said = examined(tmp_path, "solr.url=nonsense")
    unknown = examined(tmp_path, "solr.url=embedded:none", "rag.maxFilez=3")

    assert said.exit_code == 1
    assert said.output.startswith("PROBLEM settings: ")
    assert "rag.properties:2: Invalid value for solr.url" in said.output
    assert "search engine" not in said.output
    assert "rag.maxFilez" in unknown.output
    assert "Traceback" not in said.output + unknown.output


def rated(prefers: Callable[[int], float]) -> Callable[[Asked], Reply]:
    """Return a reranker whose score of a text follows from its length; the text that answers is the shorter."""

    def answer(asked: Asked) -> Reply:
        lengths = [len(text) for text in json.loads(asked.body)["texts"]]
        return Reply(json.dumps([{"index": at, "score": prefers(one)} for at, one in enumerate(lengths)]).encode())

    return answer


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        pytest.param(
            rated(lambda length: -length), "OK      reranker: tells an answer from another text by", id="good"
        ),
        pytest.param(
            rated(float), "HINT    reranker: it prefers a text that does not answer", id="the wrong way round"
        ),
        pytest.param(lambda asked: Reply(b"{}", status=422), "PROBLEM reranker: rerankerUnavailable", id="refused"),
        pytest.param(lambda asked: Reply(b"[]"), "PROBLEM reranker: rerankerGarbled", id="no scores"),
    ],
)
def test_the_reranker_is_tried(answer: Callable[[Asked], Reply], line: str, tmp_path: Path) -> None:
    with serving(answer) as server:
        said = examined(
            tmp_path,
            "solr.url=embedded:none",
            f"rerank.endpoint={server.url}/rerank",
        )
    assert line in said.output


def test_the_embedding_model_and_its_vectors_are_examined(tmp_path: Path) -> None:
    library("onnxruntime", "make .venv/.dev")
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.add([{"id": "a", "exactContent": "x"}])
        writer.commit()
    lines = ("solr.url=embedded:index", "embeddings.endpoint=onnx:model")
    absent = examined(tmp_path, *lines)
    tiny_model(tmp_path / "model")
    there = examined(tmp_path, *lines)

    assert (absent.exit_code, "PROBLEM embedding model: The folder of the embedding model" in absent.output) == (
        1,
        True,
    )
    assert there.exit_code == 0
    assert "HINT    vectors: There are no vectors beside the search index" in there.output


RIGHTS = {"ann": ["staff", "board"], "bob": ["staff", "leaver"], "eve": []}
OWNED = (("public", {}), ("s1", {"allow_token_document": ["staff"], "deny_token_document": ["leaver"]}),
         ("s2", {"allow_token_document": ["staff"]}), ("b1", {"allow_token_document": ["board"]}))  # fmt: skip


@pytest.fixture
def owned(tmp_path: Path) -> tuple[str, ...]:
    """Return the settings of an index with documents of different owners."""
    (tmp_path / "users.json").write_text(json.dumps(RIGHTS))
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        text = "A secret text that no finding shows."
        dated = {"title": "Secret title", "exactContent": text, "last_modified": "2024-05-01T00:00:00Z"}
        writer.add([{"id": name, **dated, **rights} for name, rights in OWNED])
        writer.commit()
    return f"solr.url=embedded:{tmp_path / 'index'}", "security.tokens.file=users.json"


def test_what_users_see_is_counted_and_each_token_with_what_it_does(tmp_path: Path, owned: tuple[str, ...]) -> None:
    said = examined(tmp_path, *owned, more=("--as", "ann", "--as", "bob", "--as", "eve", "--as", "nobody"))
    assert said.exit_code == 0, said.output
    for line in (
        "as ann: 4 documents: 1 public, 3 by 2 tokens",
        "as ann: token 'board' alone opens 1 documents",
        "as ann: token 'staff' alone opens 2 documents",
        "as bob: 2 documents: 1 public, 1 by 2 tokens",
        "as bob: token 'leaver' alone opens 0 documents, hides 1",
        "as eve: 1 documents: 1 public, 0 by 0 tokens",
        "as nobody: 1 documents: 1 public, 0 by 0 tokens",
    ):
        assert line in said.output
    assert "ecret" not in said.output


@pytest.mark.parametrize(
    ("user", "document", "why"),
    [
        ("ann", "public", "sees this document: it is public"),
        ("ann", "b1", "sees this document: not without 'board'"),
        ("bob", "s1", "does not see this document: denied by 'leaver'"),
        ("bob", "b1", "does not see this document: it is not in the index, or no token of this user opens it"),
        ("bob", "no such", "does not see this document: it is not in the index, or no token of this user opens it"),
    ],
)
def test_why_a_user_sees_a_document_or_does_not(
    tmp_path: Path, owned: tuple[str, ...], user: str, document: str, why: str
) -> None:
    said = examined(tmp_path, *owned, more=("--as", user, "--document", document))
    assert f"as {user}: {why}" in said.output
    assert "ecret" not in said.output


def test_a_document_needs_a_user(tmp_path: Path, owned: tuple[str, ...]) -> None:
    assert examined(tmp_path, *owned, more=("--document", "s1")).exit_code == 2


def test_rights_that_cannot_be_known_are_a_problem(tmp_path: Path, owned: tuple[str, ...]) -> None:
    (tmp_path / "users.json").write_text("[]")
    said = examined(tmp_path, *owned, more=("--as", "ann"))
    assert said.exit_code == 1
    assert "PROBLEM as ann: " in said.output


def test_stored_conversations_are_counted_and_a_broken_file_is_a_problem(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.commit()
    lines = ("solr.url=embedded:index", "chat.store.folder=chats", "security.identity=header")
    said = examined(tmp_path, *lines, more=("--no-model",))
    assert "OK      stored conversations: none yet" in said.output, said.output
    assert not (tmp_path / "chats").exists(), "a folder of another account would keep the service out"
    store = ConversationFile(tmp_path / "chats", ConversationLimits(86_400.0, 10**6, 10**7))
    store.begin("ann")
    store.close()
    assert "OK      stored conversations: works" in examined(tmp_path, *lines, more=("--no-model",)).output
    (tmp_path / "chats" / FILE).write_bytes(b"broken " * 1000)
    said = examined(tmp_path, *lines, more=("--no-model",))
    assert said.exit_code == 1
    assert "PROBLEM stored conversations: Conversations cannot be stored in chat.store.folder" in said.output


def test_the_age_of_rights_and_index_is_said(tmp_path: Path, owned: tuple[str, ...]) -> None:
    said = examined(tmp_path, *owned, more=("--freshness", "--as", "eve"))
    assert "OK      age of rights: read from the file for each request" in said.output
    assert "OK      index: last changed 20" in said.output
    assert "(0 d 0 h 0 min ago)" in said.output
    assert "OK      newest document, as eve: changed 2024-05-01T00:00:00" in said.output


def test_solr_says_when_its_index_was_changed(tmp_path: Path) -> None:
    index = Reply(json.dumps({"index": {"lastModified": "2026-01-01T00:00:00Z"}}).encode())
    with serving(solr(luke=index)) as loopback:
        where = f"solr.url={loopback.url}/solr/docs"
        asked = ("security.tokens=authority", f"security.authority.url={loopback.url}", "security.cache_s=60")
        said = examined(tmp_path, where, *asked, more=("--freshness",))
    assert "age of rights: at most 60 s (security.cache_s)" in said.output
    assert "index: last changed 2026-01-01T00:00:00Z (" in said.output
    with serving(solr(luke=Reply(b"", 403))) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs", more=("--freshness",))
    assert "HINT    index: does not report when it was changed" in said.output


def test_a_model_is_judged_by_its_answer(tmp_path: Path) -> None:
    texts = ("La salle est ouverte ", "jusqu'à 18 h 45 en semaine [1].")
    listed = {"/v1/models": {"data": [{"id": "m", "max_model_len": 32768}]}}
    with model_server(texts=texts, gets=listed) as server:
        said = examined(tmp_path, f"rag.api.endpoint={server.url}", "rag.model=m", "rag.api.token=sk-1")
    assert "answers: first words after" in said.output
    for line in (
        "OK      answer: right",
        "OK      citations: cites [1]",
        "OK      language: keeps to the question's",
        "OK      streaming: 2 pieces",
        "OK      thinking: none",
        "OK      window: the server's is 32768 tokens, llm.context.window=16384",
    ):
        assert line in said.output, said.output
    assert [message["role"] for message in server.bodies[0]["messages"]] == ["system", "user", "user", "user"]


def test_each_endpoint_of_a_chain_answers_in_its_own_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with model_server(texts=("18 h 45",)) as server:
        chain = f"llm.fallback={server.url},builtin:extractive"
        said = examined(tmp_path, "rag.api.endpoint=http://127.0.0.1:9/", "rag.model=m", chain)

    models = [line for line in said.output.splitlines() if " model (" in line]
    assert [line.partition(":")[0] for line in models] == [
        "PROBLEM model (127.0.0.1)",
        "OK      model (127.0.0.1)",
        "OK      model (builtin",
    ]
    assert said.exit_code == 1
    # What is said is not also logged.
    assert caplog.records == []


def test_a_model_that_does_badly_gets_advice(tmp_path: Path) -> None:
    listed = {"/v1/models": {"data": [{"id": "m"}]}, "/props": {"default_generation_settings": {"n_ctx": 4096}}}
    with model_server(texts=("<think>Hm.</think>The library is open all day.",), gets=listed) as server:
        said = examined(tmp_path, f"rag.api.endpoint={server.url}", "rag.model=m")
    assert said.exit_code == 1
    for line in (
        "HINT    answer: not what the document says",
        "HINT    citations: does not cite [1]",
        "HINT    language: not the question's",
        "HINT    streaming: the answer came in one piece",
        "OK      thinking: 3 characters in ",
        "PROBLEM window: the server's is 4096 tokens, llm.context.window=16384",
        "-> Set llm.context.window=4096",
    ):
        assert line in said.output, said.output


def test_refused_requests_are_told(tmp_path: Path) -> None:
    with model_server(*OPENAI) as server:
        said = examined(tmp_path, f"rag.api.endpoint={server.url}", "rag.model=m")
    assert "HINT    form: it refused the form of 2 of 3 requests" in said.output


def test_a_model_whose_streams_wait_for_its_thoughts_is_no_buffering_proxy(tmp_path: Path) -> None:
    with model_server(texts=("La salle est ouverte ", "jusqu'à 18 h 45 en semaine [1].")) as server:
        said = examined(tmp_path, f"rag.api.endpoint={server.url}", "rag.model=qwen3:8b")
    assert "-> By its name this model thinks before it answers" in said.output
    assert "buffering" not in said.output


ODD = {
    "a redirect": (302, "-> It redirects to another address"),
    "a page": (200, "-> The server at this address is no chat completions endpoint"),
}


@pytest.mark.parametrize(("status", "advice"), ODD.values(), ids=ODD.keys())
def test_an_odd_server_gets_its_own_advice(tmp_path: Path, status: int, advice: str) -> None:
    with serving(lambda asked: Reply(b"<html>", status)) as loopback:
        said = examined(tmp_path, f"rag.api.endpoint={loopback.url}/v1/x")
    assert advice in said.output


def test_a_certificate_of_the_model_that_is_not_trusted_has_its_own_advice(tmp_path: Path) -> None:
    library("cryptography.x509", "make .venv/.dev")
    from tests.adapters.test_http_tls import certificate

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(tmp_path))
    with serving(lambda asked: Reply(GOOD_MODEL), context) as loopback:
        said = examined(tmp_path, f"rag.api.endpoint={loopback.url}/v1")
    assert "-> The server's certificate is not trusted: set ca of llm in tls" in said.output


def test_the_servers_words_are_shown_without_what_was_sent(tmp_path: Path) -> None:
    def refuse(body: Mapping[str, Any]) -> tuple[int, object]:
        echoed = json.dumps(body["messages"], ensure_ascii=False)
        return 401, {"error": {"message": f"Wrong key sk-verysecret: {echoed}", "code": "invalid_api_key"}}

    with model_server(refuse) as server:
        said = examined(tmp_path, f"rag.api.endpoint={server.url}", "rag.api.token=sk-verysecret")
    assert "The language model's server refused the key of this service." in said.output
    assert "Wrong key …" in said.output
    assert "-> Check rag.api.token" in said.output
    assert "sk-verysecret" not in said.output
    assert "reading room" not in said.output and "salle de lecture" not in said.output


def test_what_readiness_asks_is_asked_here_too(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.commit()
    kept = ("solr.url=embedded:index", "audit.folder=audit", "limits.store=usage")
    well = examined(tmp_path, *kept, more=("--no-model",)).output
    (tmp_path / "usage").mkdir()
    (tmp_path / "usage" / USAGE_FILE).write_bytes(b"broken " * 1000)
    bad = examined(tmp_path, "solr.url=embedded:index", "audit.folder=/proc/x", kept[2], more=("--no-model",)).output

    assert "OK      audit: works" in well and "OK      tokens of users: none yet" in well, well
    assert "PROBLEM audit: The audit folder (audit.folder) cannot be written to." in bad
    assert "PROBLEM tokens of users: Tokens cannot be counted in limits.store." in bad
