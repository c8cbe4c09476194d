from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.commands.doctor import doctor
from datafari_rag.core.access import ACL_FIELDS
from tests.loopback import Asked, Reply, serving
from tests.required import library
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
        "OK      source of rights (file): answers; an unknown user has 0 tokens",
        "OK      model (builtin:extractive): answers",
    ):
        assert line in said.output


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
    library("cryptography.x509", "install the extra jwt")
    from tests.adapters.test_http_tls import certificate

    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with serving(solr(), context) as loopback:
        said = examined(tmp_path, f"solr.url={loopback.url}/solr/docs")
        trusted = examined(tmp_path, f"solr.url={loopback.url}/solr/docs", f"solr.tls.ca={cert}")

    assert said.exit_code == 1
    assert "set solr.tls.ca to its certificate authority" in said.output
    assert "OK      search engine: Solr answers" in trusted.output


def test_nobody_there_is_a_problem(tmp_path: Path) -> None:
    said = examined(
        tmp_path,
        "solr.url=http://127.0.0.1:1/solr/docs",
        "security.tokens.file=absent.json",
        "rag.api.endpoint=http://127.0.0.1:1/v1/chat/completions",
        "llm.retries=0",
    )

    assert said.exit_code == 1
    assert "Is Solr running" in said.output
    assert "PROBLEM source of rights (file)" in said.output
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
    assert "datafari-rag index" in absent.output
    assert (there.exit_code, "OK      search engine: the embedded index answers" in there.output) == (0, True)


def test_a_model_that_answers_is_well(tmp_path: Path) -> None:
    with serving(lambda asked: Reply(GOOD_MODEL)) as model:
        said = examined(tmp_path, "solr.url=embedded:none", f"rag.api.endpoint={model.url}/v1/chat/completions")

    assert "OK      model (127.0.0.1): answers" in said.output


def test_settings_that_cannot_be_understood_are_said(tmp_path: Path) -> None:
    said = examined(tmp_path, "solr.url=nonsense")
    unknown = examined(tmp_path, "solr.url=embedded:none", "rag.maxFilez=3")

    assert said.exit_code == 1
    assert said.output.startswith("PROBLEM settings: ")
    assert "rag.properties:2: Invalid value for solr.url" in said.output
    assert "search engine" not in said.output
    assert "rag.maxFilez" in unknown.output
    assert "Traceback" not in said.output + unknown.output


def test_the_embedding_model_and_its_vectors_are_examined(tmp_path: Path) -> None:
    library("onnxruntime", "install the extra vectors")
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
    assert "OK      embedding model: returns vectors with 4 dimensions" in there.output
    assert "HINT    vectors: There are no vectors beside the search index" in there.output
