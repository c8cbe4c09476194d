"""`datafari-rag check`: thirty and more broken files, each with its line and message; exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.commands.check import check

SEED_EXAMPLE = """\
rag.api.token=
rag.api.endpoint=https://<LLM_SERVICE_HOST>:8888/invoke
rag.temperature=0.7
rag.maxTokens=250
rag.maxFiles=3
rag.maxJsonLength=150000000
rag.maxFiles=3
rag.maxJsonLength=150000000
rag.model=
rag.addInstructions=false
rag.template=datafari
rag.solrField=highlighting
rag.hl.fragsize=800
rag.enable.logs=true
rag.operator=AND
"""

ENDPOINT = 'Valid values are http(s) addresses and "builtin:extractive".'

BROKEN = [
    pytest.param("rag.maxFile=3", 1, "Unknown key rag.maxFile: did you mean rag.maxFiles?", id="a misspelt key"),
    pytest.param("#\n\nrag.solrfield=x", 3, "did you mean rag.solrField?", id="a key in another case"),
    pytest.param("rag.maxFiles 3\nrag.models=a", 2, "did you mean rag.model?", id="a plural"),
    pytest.param("= 3", 1, "A key is missing before the equals sign.", id="no key at all"),
    pytest.param("sk-1234567", 1, "Unknown key sk-1234567.", id="a value on a line of its own"),
    pytest.param("ai.api.endpoint=http://a/", 1, "did you mean rag.api.endpoint?", id="a later version"),
    pytest.param("agentic.enable.loop.control=true", 1, "has no effect here", id="a later feature"),
    pytest.param("rag.maxFiles=three", 1, 'property: "three". An integer is expected.', id="a word for an integer"),
    pytest.param("rag.maxFiles=3.5", 1, "An integer is expected.", id="a fraction for an integer"),
    pytest.param("rag.maxFiles=0", 1, "A number between 1 and 1000 is expected.", id="no file at all"),
    pytest.param("rag.maxFiles=3 # best", 1, "Put the comment on its own line.", id="a comment behind a value"),
    pytest.param("rag.temperature=2.1", 1, "A number between 0 and 2 is expected.", id="too hot"),
    pytest.param("rag.temperature=0,7", 1, "A number between 0 and 2 is expected.", id="a decimal comma"),
    pytest.param("rag.hl.fragsize=big", 1, "An integer is expected.", id="a snippet of no size"),
    pytest.param(
        "a\\\n b=1\nrag.solrField=content",
        3,
        'property: "content". Valid values are "highlighting", "preview_content" and "exactContent".',
        id="an unknown field after a continued line",
    ),
    pytest.param("rag.operator=and", 1, 'Valid values are "AND" and "OR".', id="an operator in small letters"),
    pytest.param('rag.operator="AND"', 1, "Leave out the quotation marks.", id="quotation marks"),
    pytest.param("rag.template=azure", 1, 'Valid values are "openai" and "datafari".', id="an unknown template"),
    pytest.param("rag.addInstructions=yes", 1, 'Valid values are "true" and "false".', id="yes for true"),
    pytest.param("rag.api.endpoint=", 1, "is empty: its default", id="no endpoint"),
    pytest.param("rag.api.endpoint=api.openai.com", 1, ENDPOINT, id="an endpoint without scheme"),
    pytest.param("rag.api.token=${NO_SUCH_VARIABLE_HERE}", 1, "NO_SUCH_VARIABLE_HERE is not set.", id="no variable"),
    pytest.param("rag.api.token=file:gone.txt", 1, "The file gone.txt cannot be read.", id="no file of the token"),
    pytest.param("log.level=INFO\naudit.folder=C:\\users\\log", 2, "Write a backslash twice", id="a bad escape"),
    pytest.param("audit.folder=C:\\temp", 1, "Write a backslash twice.", id="an unintended escape"),
    pytest.param("audit.folder=rag.properties/audit", 1, "cannot write to the folder", id="an audit below a file"),
    pytest.param("audit.folder=/proc/audit", 1, "cannot write to the folder", id="an audit where nobody may write"),
    pytest.param("security.tokens.file=gone.json", 1, "gone.json cannot be read.", id="no file of tokens"),
    pytest.param("llm.fallback=builtin:extractive,http://a/", 1, "of which the last may be", id="a fallback too early"),
    pytest.param("llm.limits.retries=-1", 1, "A number between 0 and 20 is expected.", id="less than no retry"),
    pytest.param("retrieval.method=dense", 1, 'Valid values are "hybrid" and "bm25".', id="no such search"),
    pytest.param("embeddings.endpoint=models/x", 1, "and onnx:FOLDER.", id="a model without a form"),
    pytest.param("openai.indexes=a,a", 1, "each name once", id="an index twice"),
    pytest.param("solr.url=localhost:8983", 1, "Valid values are http(s)://HOST/solr/COLLECTION", id="half a Solr"),
    pytest.param('solr.fields={"title": "a b"}', 1, "A JSON object with names of fields", id="a field with a blank"),
    pytest.param("solr.facets=source,allow_token_share", 1, "cannot be used as facets", id="rights as facets"),
    pytest.param("security.identity=ldap", 1, '"anonymous", "header", "jwt" and "demo".', id="an unknown identity"),
    pytest.param("security.identity=", 1, '"anonymous", "header", "jwt" and "demo".', id="an emptied identity"),
    pytest.param("security.trusted.proxies=10.0.0.0/99", 1, "lists of IP networks", id="no network"),
    pytest.param("solr.url=embedded:i\nsecurity.mode=plugin", 2, "tokens is expected", id="a plugin that is not there"),
    pytest.param("server.port=http", 1, "An integer is expected.", id="a port by name"),
    pytest.param("server.host=0.0.0.0\nsecurity.identity=demo", 2, "loopback address", id="demo users for everybody"),
    pytest.param("server.cors.origins=https://a/b", 1, "lists of origins", id="a path in an origin"),
    pytest.param("server.secret=short", 1, "at least 16 characters", id="a short secret"),
]

WARNED = [
    pytest.param(SEED_EXAMPLE, [2, 7, 8], id="RagAPI's own example"),
    pytest.param("rag.maxToken=9", [1], id="an alias"),
    pytest.param("rag.model=a\nrag.addInstructions=false", [2], id="instructions that cannot be left out"),
    pytest.param("server.secret=0123456789abcdef", [1], id="a secret in a file for everybody"),
    pytest.param("rag.model=", [1], id="no model for OpenAI"),
]


def checked(folder: Path, text: str, *options: str, mode: int = 0o644) -> Result:
    path = folder / "rag.properties"
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return CliRunner().invoke(check, [*options, str(path)])


@pytest.mark.parametrize(("text", "line", "message"), BROKEN)
def test_a_broken_file_is_told_with_line_and_message(tmp_path: Path, text: str, line: int, message: str) -> None:
    result = checked(tmp_path, text, "--strict")
    assert result.exit_code == 1
    found = [told for told in result.stdout.splitlines() if message in told]
    assert found and found[0].startswith(f"{tmp_path}/rag.properties:{line}: ")


@pytest.mark.parametrize(
    ("users", "told"),
    [
        ('{"alice": ["hr"],\n\n "bob": "hr"}', "line 3, user bob: a list of tokens in quotation marks is expected."),
        ("[1,\n2", "line 2 is not JSON: Expecting ',' delimiter."),
        ("[]", "line 1: a JSON object of users is expected."),
    ],
    ids=["tokens that are no list", "no JSON", "no users"],
)
def test_a_broken_file_of_users_is_told_with_user_and_line(tmp_path: Path, users: str, told: str) -> None:
    (tmp_path / "users.json").write_text(users, "utf-8")
    result = checked(tmp_path, f"security.tokens.file={tmp_path}/users.json")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].endswith(f"The file {tmp_path}/users.json cannot be used: {told}")


@pytest.mark.parametrize(("text", "lines"), WARNED)
def test_a_warning_fails_only_when_strict(tmp_path: Path, text: str, lines: list[int]) -> None:
    result = checked(tmp_path, text)
    told = [f"{tmp_path}/rag.properties:{line}: warning: " for line in lines]
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == len(told)
    assert all(map(str.startswith, result.stdout.splitlines(), told))
    assert checked(tmp_path, text, "--strict").exit_code == 1


def test_an_address_that_is_completed_is_a_note_also_when_strict(tmp_path: Path) -> None:
    result = checked(tmp_path, "rag.model=a\nrag.api.endpoint=http://localhost:11434", "--strict")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{tmp_path}/rag.properties:2: note: rag.api.endpoint is a base address: ")
    assert result.stderr.endswith("no errors, no warnings\n")


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    text = "\n".join(f"audit.folder=\\u{number}\nrag.maxFiles=x{number}\nnothing{number}=1" for number in range(3))
    result = checked(tmp_path, text)
    assert "nothing0" in result.stdout and "nothing2" in result.stdout
    assert (
        ":7: Invalid value for audit.folder" in result.stdout
        and ':8: Invalid value for rag.maxFiles property: "x2"' in (result.stdout)
    )


@pytest.mark.parametrize("text", ["", "\n# only a comment\n", "rag.maxFiles=4\r\nrag.model=é\r\n"])
def test_a_good_file_passes_strictly_without_a_word(tmp_path: Path, text: str) -> None:
    result = checked(tmp_path, text, "--strict")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.endswith("no errors, no warnings\n")


def test_a_secret_is_fine_in_a_file_of_ones_own_and_never_printed(tmp_path: Path) -> None:
    assert checked(tmp_path, "server.secret=0123456789abcdef", "--strict", mode=0o600).exit_code == 0
    result = checked(tmp_path, "server.secret=hunter2")
    assert "hunter2" not in result.output


@pytest.mark.parametrize("name", ["gone.properties", ""], ids=["no such file", "a folder"])
def test_what_cannot_be_read_is_said_in_a_line(tmp_path: Path, name: str) -> None:
    result = CliRunner().invoke(check, [str(tmp_path / name)])
    assert result.exit_code == 1
    assert result.stdout.startswith(str(tmp_path)) and "Traceback" not in result.output


def test_what_is_told_of_a_model_names_the_whole_address_and_no_key(tmp_path: Path) -> None:
    told = checked(tmp_path, "rag.api.endpoint=https://me:secret@api.openai.com/v1?key=secret\nrag.model=").stdout
    assert "secret" not in told
    assert "requests go to https://***@api.openai.com/v1/chat/completions." in told
    assert "rag.model is empty: api.openai.com needs the name of a model." in told
