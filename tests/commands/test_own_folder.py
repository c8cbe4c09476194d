"""A folder of one's own: everything in it is read, or named with the reason why it is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.bootstrap import create_app
from datafari_rag.commands.main import LazyGroup
from datafari_rag.commands.terminal import typed
from datafari_rag.ingest.parsers import texts
from tests.ingest.parsers.written import zip_of
from tests.required import program

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
DATA = Path(__file__).parents[1] / "data" / "files"
DOC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600


class Own:
    """A folder with its own settings, and the commands on it."""

    def __init__(self, folder: Path) -> None:
        self.files = folder / "notes"
        self.files.mkdir()
        self.conf = folder / "rag.properties"
        self.conf.write_text("solr.url=embedded:index\nrag.api.endpoint=builtin:extractive\n")

    def put(self, name: str, data: str | bytes) -> Path:
        path = self.files / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(LazyGroup(), [*arguments, "--conf", str(self.conf)])

    def index(self, *more: str) -> Sequence[str]:
        return self.run("index", str(self.files), *more).stdout.splitlines()


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return Own(tmp_path)


def test_what_is_passed_over_is_counted_by_ending_with_the_reason(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "WORD_PROGRAMS", ())
    for name in ("a.txt", ".hidden.txt", ".git/config"):
        own.put(name, "The ferry leaves at nine.")
    for name in ("old.doc", "older.DOC"):
        own.put(name, DOC)
    own.put("empty.txt", "")
    own.put("film.mp4", b"\0\0\0\x18ftypmp42")
    own.put("blob", bytes(range(256)))

    first, second = own.index(), own.index()

    passed = [
        "2 hidden",
        "2 .doc (antiword or catdoc is not installed)",
        "1 .txt (empty)",
        "1 .mp4 (no reader)",
        "1 without an ending (no reader)",
    ]
    assert first[0] == "1 document written, 0 removed, 0 files unchanged, 0 problems"
    assert sorted(first[1].split(": ")[1].split(", ")) == sorted(passed)
    assert first[1].startswith("1 file read, 0 not readable, 7 passed over: ")
    assert second[0] == "0 documents written, 0 removed, 1 file unchanged, 0 problems"
    assert second[1] == first[1].replace("1 file read", "0 files read")


@pytest.mark.parametrize("name", ["README", "script.py", "Makefile", "notes.unheardof", "query.sql"])
@pytest.mark.parametrize("code", ["utf-8", "utf-16", "cp1252"])
def test_text_is_text_whatever_it_is_called(own: Own, name: str, code: str) -> None:
    own.put(name, "# Le club de voile a été fondé par Henri Kerbrat en 1998.\n".encode(code))

    assert own.index()[0].startswith("1 document written")
    assert "Henri Kerbrat" in own.run("ask", "Qui a fondé le club de voile ?").stdout


def test_source_code_is_called_by_its_name_and_not_by_its_first_line(own: Own) -> None:
    own.put("backup.py", "import shutil\n\n# The backup of the customer database runs every night at two.\n")
    own.index()

    assert "[1] backup.py  file:" in own.run("ask", "When does the backup of the customer database run?").stdout


def test_text_that_becomes_something_else_leaves_the_index(own: Own) -> None:
    path = own.put("notes.unheardof", "The ferry leaves at nine.")
    own.index()
    path.write_bytes(b"\0\1\2\3")

    assert own.index() == [
        "0 documents written, 1 removed, 0 files unchanged, 0 problems",
        "0 files read, 0 not readable, 1 passed over: 1 .unheardof (no reader)",
        f"{path}: passed over: no reader",
    ]


@pytest.mark.parametrize("name", ["antiword", "catdoc"])
def test_a_document_of_old_word_is_read(own: Own, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    program(name, f"apt-get install {name}")
    own.put("old.doc", (DATA / "harbour.doc").read_bytes())
    own.put("none.doc", DOC)

    result = own.run("index", str(own.files))

    assert result.stdout.startswith("1 document written, 0 removed, 0 files unchanged, 1 problem")
    assert "none.doc: This is not a Word document, or it is protected." in result.stderr
    assert "at half past five" in own.run("ask", "When does the pilot boat leave?").stdout


def test_a_document_of_old_word_inside_another_file_is_named_with_the_reason(own: Own) -> None:
    """Its programs seek in a file, and nothing that is in a file becomes one on the disk."""
    program("catdoc", "apt-get install catdoc")
    zip_of(own.files / "a.zip", ("old.doc", (DATA / "harbour.doc").read_bytes()), ("b.txt", b"words"))

    result = own.run("index", str(own.files))

    assert result.stdout.startswith("1 document written, 0 removed, 0 files unchanged, 1 problem")
    assert f"a.zip#old.doc: {texts.WORD_INSIDE}" in result.stderr


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("minutes 2026-03-12", "minutes 2026-03-12.txt"),
        ("big log book", "big log book.txt"),
        ("Contract Altair.docx", "Contract Altair.docx.txt"),
        ("contrat signé", "contrat signé.txt"),
    ],
)
def test_a_file_is_found_by_its_name_which_is_shown_beside_its_title(own: Own, asked: str, name: str) -> None:
    own.put(name, "Weekly round\n\nPresent: everybody.\n")
    own.put("another.txt", "Weekly round\n\nThe coffee machine is out of order.\n")
    own.index()
    with create_app(own.conf).test_client() as client:
        found = client.get("/search/select", query_string={"q": asked}).get_json()["response"]["docs"]
        page = client.get("/", query_string={"q": asked}).text
        answered = client.get("/", query_string={"q": "Who is present at the weekly round?"}).text

    assert [one["title"] for one in found] == [["Weekly round"]]
    assert f"notes › {name}" in page
    assert name in answered.split('class="sources"')[1].split("</ol>")[0]


def test_a_folder_that_is_gone_is_named_and_can_be_forgotten(own: Own) -> None:
    own.put("a.txt", "The ferry leaves at nine.")
    own.put("in/b.txt", "The train leaves at ten.")
    own.index()
    moved = own.files.rename(own.files.parent / "moved")

    again = own.run("index", str(own.files))

    assert again.exit_code == 2
    way = f"There is no file or folder {own.files}. `datafari-rag forget {own.files}` takes"
    assert typed(way, own.conf) in again.stderr
    assert own.run("forget", str(own.files / "in")).stdout == "1 document removed\n"
    assert "at ten" not in own.run("ask", "When does the train leave?").stdout
    assert own.run("forget", (own.files / "a.txt").as_uri()).stdout == "1 document removed\n"
    assert "noDocuments" in own.run("ask", "When does the ferry leave?").stderr
    unknown = own.run("forget", str(own.files))
    assert (unknown.exit_code, unknown.stdout) == (1, "0 documents removed\n")
    assert "The index has nothing that `index` took from" in unknown.stderr
    assert own.run("index", str(moved)).stdout.startswith("2 documents written")


def test_what_is_forgotten_and_still_there_comes_back_with_the_next_run(own: Own) -> None:
    own.put("a.txt", "The ferry leaves at nine.")
    path = own.put("b.txt", "The train leaves at ten.")
    own.index()

    assert own.run("forget", str(path)).stdout == "1 document removed\n"
    assert own.index()[0] == "1 document written, 0 removed, 1 file unchanged, 0 problems"


def test_a_document_is_named_by_the_path_of_its_file(own: Own, tmp_path: Path) -> None:
    ferry = own.put("ferry times.txt", "The ferry to the island leaves at nine.")
    train = own.put("train times.txt", "The train to the coast leaves at ten.")
    own.index()
    answer = tmp_path / "answer.txt"
    answer.write_text("The ferry to the island leaves at nine.")

    assert "The ferry to the island leaves at nine." in own.run("summarize", str(ferry)).stdout
    compared = own.run("compare", str(ferry), str(train), "--question", "When does it leave?").stdout
    assert "nine" in compared and "ten" in compared
    assert "Verified: 100%" in own.run("check-answer", str(answer), "--document", str(ferry)).stdout
