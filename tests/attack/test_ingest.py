"""
A stranger may write into the folder that an administrator indexes: what they reach with it.

They want texts outside the folder, documents of others under their words, rights wider than those of the run, or
that the run does not come to its end.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.commands.index import index
from datafari_rag.core.access import ACL_FIELDS, ANONYMOUS, NO_SECURITY, User, filter_for
from datafari_rag.core.search_request import Browse
from tests.attack.report import Record, judge

SECRET = "supersecretsalary"
OWN = "notes of a colleague"
SHARE = ("--allow", "g:share", "--deny", "g:out")
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


class Share:
    """A shared folder with a colleague's file, a folder of secrets beside it, and an embedded index."""

    def __init__(self, place: Path) -> None:
        self.root, self.secrets, self.index = place / "share", place / "secrets", place / "index"
        self.root.mkdir(parents=True)
        self.secrets.mkdir()
        (self.secrets / "pay.txt").write_text(SECRET)
        (self.secrets / "pay.jsonl").write_text(json.dumps({"id": "pay", "content": SECRET}))
        self.own = self.root / "m.txt"
        self.own.write_text(OWN)
        self.conf = place / "rag.properties"
        self.conf.write_text(f"solr.url=embedded:{self.index}\n")
        self.conf.chmod(0o600)

    def run(self, *options: str, path: Path | None = None) -> Result:
        result = CliRunner().invoke(index, [str(path or self.root), *options, "--conf", str(self.conf)])
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        return result

    def seen(self, *tokens: str) -> dict[str, str]:
        """Return id → text of all that a user with *tokens* finds, the anonymous without any."""
        user = User("eve", frozenset(tokens)) if tokens else ANONYMOUS
        access = filter_for(user, mode="tokens", anonymous="public")
        response: Any = EmbeddedRetriever(self.index).browse(Browse(None, rows=50_000), access)["response"]
        return {row["id"]: row.get("exactContent", [""])[0] for row in response["docs"]}

    def lines(self, name: str, *lines: Mapping[str, object]) -> None:
        (self.root / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def share(tmp_path: Path) -> Share:
    return Share(tmp_path)


def link(share: Share, name: str, target: str | Path) -> str:
    (share.root / name).parent.mkdir(parents=True, exist_ok=True)
    (share.root / name).symlink_to(target)
    return name


LINKS: list[Callable[[Share], str]] = [
    lambda share: link(share, "l1.txt", share.secrets / "pay.txt"),
    lambda share: link(share, "l2.txt", "../secrets/pay.txt"),
    lambda share: link(share, "deep/er/l3.md", "../../../secrets/pay.txt"),
    lambda share: link(share, "l4", share.secrets),
    lambda share: link(share, "l5.jsonl", share.secrets / "pay.jsonl"),
    lambda share: link(share, "l6.txt", link(share, "l6b.txt", "../secrets/pay.txt")),
    lambda share: link(share, "l7.txt", f"{share.root}/../secrets/pay.txt"),
    lambda share: link(share, "l8.txt", f"{link(share, 'l8', share.secrets)}/pay.txt"),
    lambda share: link(share, "l9.txt", f"/proc/self/cwd/{share.secrets}/pay.txt"),
    lambda share: link(share, "l10.txt", "/etc/passwd"),
    lambda share: link(share, "l11.txt", "/proc/self/environ"),
    lambda share: link(share, "l12", "/"),
    lambda share: link(share, "l13.txt", f"./././../{share.root.name}/../secrets/pay.txt"),
    lambda share: link(share, "l14.txt\n/x.txt".replace("/", "_"), "../secrets/pay.txt"),
]


def test_links_out_of_the_folder(share: Share, record_property: Record) -> None:
    names = [make(share) for make in LINKS]
    result = share.run()
    holes = [f"{document_id}: {text[:30]}" for document_id, text in share.seen().items() if text != OWN]
    for name in names:
        spelled = str(share.root / name).replace("\n", "\\n")
        if f"{spelled}: This link points outside the indexed folder" not in result.stderr:
            holes.append(f"{name!r} is not named")
    judge(record_property, "links out of the indexed folder", against="index", tried=len(names), holes=holes)


@contextmanager
def swapping(*steps: Callable[[], None]) -> Iterator[None]:
    """Do *steps* in turn, without a pause, as long as the block runs; the last turn is brought to its end."""
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            for step in steps:
                step()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_links_that_come_and_go_while_the_folder_is_read(share: Share, record_property: Record) -> None:
    """A file and a folder that are links every other moment: what is opened has to be what was looked at."""
    inner, aside = share.root / "in", share.root.parent / "aside"
    inner.mkdir()
    names = [f"{number}.txt" for number in range(50)]
    for name in names:
        (inner / name).write_text(OWN)
        (share.secrets / name).write_text(SECRET)
    holes, tried = [], 8
    steps = [
        lambda: inner.rename(aside),
        lambda: inner.symlink_to("../secrets"),
        lambda: inner.unlink(),
        lambda: aside.rename(inner),
    ]
    for _ in range(tried):
        with swapping(*steps):
            share.run("--again")
        holes += [document_id for document_id, text in share.seen().items() if SECRET in text]
    judge(record_property, "links swapped in while reading", against="index", tried=tried * len(names), holes=holes)


def test_documents_of_others_under_the_words_of_a_jsonl(share: Share, record_property: Record) -> None:
    share.lines("n.jsonl", {"id": "of n", "content": OWN})
    share.run(*SHARE)
    uri = share.own.as_uri()
    ids = [
        uri, "of n", uri.replace("file:", "FILE:"), f"{share.root.as_uri()}/new.txt", "file:/x", "file:///", "file:",
        f"{share.root.as_uri()}/./m.txt",
    ]  # fmt: skip
    public = {"allow_token_document": [NO_SECURITY], "deny_token_document": [NO_SECURITY]}
    holes = []
    for number, (name, options) in enumerate(itertools.product(("a.jsonl", "z.jsonl", "a.ndjson"), ((), ("--again",)))):
        share.lines(name, *({"id": one, "content": f"forged {number}", **public} for one in ids))
        (share.root / "new.txt").write_text(OWN)
        result = share.run(*SHARE, *options)
        holes += [f"{one}: not named" for one in range(1, len(ids) + 1) if f"{name}:{one}: id: " not in result.stderr]
        share.run(*SHARE)
        holes += [f"{one} is forged" for one, text in share.seen("g:share").items() if "forged" in text]
        holes += [f"{one} is public" for one in share.seen()]
        holes += [f"{one} is gone" for one in (uri, "of n") if share.seen("g:share").get(one) != OWN]
        (share.root / name).unlink()
        (share.root / "new.txt").unlink()
    judge(record_property, "others' documents taken by a .jsonl", against="index", tried=len(ids) * 6, holes=holes)


def test_rights_wider_than_those_of_the_run(share: Share, record_property: Record) -> None:
    """Whatever the six fields say, nobody finds a document whom --allow and --deny do not let in."""
    rng = random.Random(15)
    values = [None, [], [NO_SECURITY], ["g:eve"], [NO_SECURITY, "g:eve"], ["g:share"], "g:eve", NO_SECURITY, [""]]
    combinations = [dict(zip(ACL_FIELDS, rng.choices(values, k=6), strict=True)) for _ in range(3000)]
    combinations += [dict.fromkeys(ACL_FIELDS, value) for value in values]
    share.lines("a.jsonl", *({"id": str(number), "content": "words", **acl} for number, acl in enumerate(combinations)))
    share.run(*SHARE)
    strangers = {who: share.seen(*who) for who in ((), ("g:eve",), ("g:share", "g:out"), ("g:eve", "g:out"))}
    holes = [f"{who} finds {found}" for who, ids in strangers.items() for found in ids]
    assert len(share.seen("g:share", "g:eve")) > 100, "documents whose rights are narrower are there"
    judge(record_property, "rights widened by a .jsonl", against="index", tried=4 * len(combinations), holes=holes)


def word_file(path: Path, body: str, head: str = "") -> None:
    """Write a Word file with *body*, and *head* before its first tag."""
    office = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{types}"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{office}"/></Types>',
        )
        packed.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{relations}">'
            f'<Relationship Id="r1" Type="{kind}" Target="word/document.xml"/></Relationships>',
        )
        packed.writestr("word/document.xml", f"{head}<w:document {WORD}><w:body>{body}</w:body></w:document>")


def pdf_file(path: Path, *objects: bytes) -> None:
    """Write a PDF file of *objects*, numbered from 1, the first its catalogue."""
    raw, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(raw))
        raw += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (count, len(raw))
    path.write_bytes(raw + b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table) + end)


def packed_stream(raw: bytes, times: int = 1) -> bytes:
    for _ in range(times):
        raw = zlib.compress(raw, 9)
    return b"<</Filter[%s]/Length %d>>stream\n%s\nendstream" % (b"/FlateDecode" * times, len(raw), raw)


CATALOGUE, PAGES = b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>"
ENTITIES = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))

HTML = {
    "tags that do not end": b"<a " * 300_000,
    "comments that do not end": b"<!--" * 250_000,
    "ends that do not end": b"</" * 500_000,
    "sections that do not end": b"<![CDATA[" * 110_000,
    "values that do not end": b'<a b="' * 160_000,
    "instructions": b"<?" * 300_000,
    "tabs kept": b"<pre>" + b"\t" * 300_000 + b"x",
    "spaces kept": b"<pre>" + b" \n" * 300_000 + b"x",
    "bold that does not end": b"<b>" * 100_000 + b"</i>" * 100_000,
    "a nest": b"<div>" * 20_000,
    "less than": b"<" * 1_000_000,
}

HANGS: dict[str, Callable[[Path], object]] = {
    **{f"{name}.html": lambda path, raw=raw: path.write_bytes(raw) for name, raw in HTML.items()},  # type: ignore[misc]
    "a wide cell.docx": lambda path: word_file(
        path, '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="5000000"/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>'
    ),
    "wide cells.docx": lambda path: word_file(
        path,
        "<w:tbl>"
        + '<w:tr><w:tc><w:tcPr><w:gridSpan w:val="999"/></w:tcPr><w:p><w:r><w:t>word</w:t></w:r></w:p></w:tc></w:tr>'
        * 5000
        + "</w:tbl>",
    ),
    "cells that go on below.docx": lambda path: word_file(
        path,
        "<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr>"
        + "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc></w:tr>" * 900
        + "</w:tbl>",
    ),
    "entities.docx": lambda path: word_file(
        path, "<w:p><w:r><w:t>&k;</w:t></w:r></w:p>", f'<!DOCTYPE x [<!ENTITY a "{"a" * 1000}">{ENTITIES}]>'
    ),
    "a foreign entity.docx": lambda path: word_file(
        path,
        "<w:p><w:r><w:t>&x;</w:t></w:r></w:p>",
        f'<!DOCTYPE x [<!ENTITY x SYSTEM "{(path.parent.parent / "secrets/pay.txt").as_uri()}">]>',
    ),
    "nested tables.docx": lambda path: word_file(
        path, "<w:tbl><w:tr><w:tc>" * 5000 + "<w:p/></w:tc></w:tr></w:tbl>" * 5000
    ),
    "pages in a circle.pdf": lambda path: pdf_file(path, CATALOGUE, b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"),
    "one page often.pdf": lambda path: pdf_file(
        path, CATALOGUE, b"<</Type/Pages/Kids[" + b"3 0 R " * 30_000 + b"]>>", PAGE, packed_stream(b"BT ET")
    ),
    "a packed stream.pdf": lambda path: pdf_file(path, CATALOGUE, PAGES, PAGE, packed_stream(b" " * 150_000_000)),
    "a stream packed thrice.pdf": lambda path: pdf_file(
        path, CATALOGUE, PAGES, PAGE, packed_stream(b" " * 150_000_000, 3)
    ),
    "brackets.pdf": lambda path: pdf_file(path, CATALOGUE, PAGES, PAGE, packed_stream(b"[" * 1_000_000)),
    "a table of itself.pdf": lambda path: path.write_bytes(
        b"%PDF-1.4\nxref\n0 1\n0000000000 65535 f \ntrailer<</Size 1/Root 1 0 R/Prev 9>>\nstartxref\n9\n%%EOF"
    ),
    "nested quotations.md": lambda path: path.write_bytes(b"> " * 20_000 + b"a"),
    "brackets.md": lambda path: path.write_bytes(b"[" * 60_000),
    "stars.md": lambda path: path.write_bytes(b"*a_ " * 20_000),
    "front matter.md": lambda path: path.write_bytes(b"---\n" + b"a: &a [*a]\n" * 50_000 + b"---\n!!python/object:x"),
    "nested lists.jsonl": lambda path: path.write_bytes(b'{"id":"x","content":' + b"[" * 1_000_000),
    "many lists.jsonl": lambda path: path.write_bytes(
        b'{"id":"x","content":"t","title":[' + b"[]," * 9_000_000 + b"[]]}"
    ),
    "zeros.jsonl.gz": lambda path: path.write_bytes(gzip.compress(b"0" * 150_000_000)),
    "line ends.jsonl.gz": lambda path: path.write_bytes(gzip.compress(b"\n" * 150_000_000)),
}


def test_files_that_stop_the_run(share: Share, record_property: Record) -> None:
    """The others are taken, and this process itself does less than those that read the files."""
    for name, make in HANGS.items():
        make(share.root / name)
    began = os.times()
    result = share.run("--file-seconds", "2", "--file-memory", "400")
    ended = os.times()
    own_s, readers_s = ended.user - began.user, ended.children_user - began.children_user
    seen = share.seen()
    holes = [f"{document_id} has a secret" for document_id, text in seen.items() if SECRET in text]
    if seen.get(share.own.as_uri()) != OWN:
        holes.append(f"the colleague's file is not there: {result.stderr}")
    if own_s > readers_s:
        holes.append(f"the run itself needed {own_s:.0f} s of the processor, and the readers {readers_s:.0f} s")
    holes += [line for line in result.stderr.splitlines() if "ended unexpectedly" in line]
    judge(record_property, "files that need time or memory", against="index", tried=len(HANGS), holes=holes)


def named(share: Share, raw: bytes) -> None:
    Path(os.fsdecode(os.fsencode(share.root) + b"/" + raw)).write_text(OWN)


NAMES = [
    b"line\nend.txt", b"return\rhere.txt", b"\xff\xfe.txt", b"\xed\xa0\x80.txt", "\u202etxt.exe.txt".encode(),
    b"\x1b]0;title\x07.txt", b"\x1b[2J.txt", b"x" * 251 + b".txt", "é".encode() * 125 + b".txt", b"%2e%2e%2f.txt",
    b"..txt", b"...txt", b" .txt", b"a#b?c.txt", b"A.TXT", b"a.txt", b"a.Txt", b"-rf.txt", b"~.txt", b"*.txt",
    b"$(x).txt", "e\u0301.txt".encode(), "\u00e9.txt".encode(), b"\\udcff.txt", b"\xff.jsonl", b"\xff.pdf",
    "\U0001f600.txt".encode(),
]  # fmt: skip


def test_names_of_files(share: Share, record_property: Record) -> None:
    for raw in NAMES:
        named(share, raw)
    os.mkfifo(share.root / "\x1b[31mred\n.txt")
    result = share.run()
    again = share.run()
    seen = share.seen()
    plain = [raw for raw in NAMES if not raw.startswith(b".") and raw not in (b"\xff.jsonl", b"\xff.pdf")]
    holes = [f"{len(seen)} documents of {len(plain) + 1} files"] if len(seen) != len(plain) + 1 else []
    holes += [repr(line) for line in (result.stderr + again.stderr).splitlines() if not line.isprintable()]
    holes += [repr(line) for line in result.stderr.splitlines() if not line.startswith(str(share.root))]
    if f"{len(plain) + 1} files unchanged" not in again.stdout:
        holes.append(again.stdout)
    judge(record_property, "names of files", against="index", tried=len(NAMES) + 1, holes=holes)


def test_what_is_no_file(share: Share, record_property: Record) -> None:
    names = [f"pipe{number}{ending}" for number, ending in enumerate((".txt", ".jsonl", ".pdf", ".docx", ".jsonl.gz"))]
    for name in names:
        os.mkfifo(share.root / name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(share.root / "socket.txt"))
        result = share.run()
    holes = [name for name in [*names, "socket.txt"] if f"{name}: This is not a regular file." not in result.stderr]
    with swapping(
        lambda: share.own.unlink(),
        lambda: os.mkfifo(share.own),
        lambda: share.own.unlink(),
        lambda: share.own.write_text(OWN) and None,
    ):
        for _ in range(10):
            share.run("--again")
    judge(record_property, "pipes and sockets", against="index", tried=len(names) + 11, holes=holes)


def test_a_folder_that_changes_while_it_is_read(share: Share, record_property: Record) -> None:
    """Files grow, go and come; a growing one is read up to the size it had."""
    grown, lines = share.root / "grown.txt", share.root / "lines.jsonl"

    def grow() -> None:
        for path, raw in ((grown, b"word " * 5000), (lines, json.dumps({"id": "x", "content": "t"}).encode() + b"\n")):
            with path.open("ab") as file:
                file.write(raw)
        for path in (grown, lines):
            if path.stat().st_size > 200_000:
                os.truncate(path, 0)

    steps = [
        grow,
        lambda: (share.root / "gone").mkdir(exist_ok=True),
        lambda: (share.root / "gone/a.txt").write_text("text") and None,
        lambda: (share.root / "gone/a.txt").unlink(),
        lambda: (share.root / "gone").rmdir(),
    ]
    tried = 8
    with swapping(*steps):
        for _ in range(tried):
            share.run()
    share.run()
    holes = [] if share.seen()[share.own.as_uri()] == OWN else ["the colleague's file is not there"]
    judge(record_property, "a folder that changes while read", against="index", tried=tried, holes=holes)


def test_stamps_that_a_jsonl_gives_its_documents(share: Share, record_property: Record) -> None:
    """They are the index's own: a forged one takes no file, hides no change, and keeps nothing that is gone."""
    share.run(*SHARE)
    forged = [f"0 - -/1 {share.own}", f"0 - 1/1 {share.secrets}/x", " - - ", "x" * 5000, share.own.as_uri()]
    names = [f"d{number}" for number in range(len(forged))]
    rows = zip(names, forged, strict=True)
    share.lines("f.jsonl", *({"id": name, "content": "t", "index_stamp": stamp} for name, stamp in rows))
    share.run(*SHARE)
    share.run(*SHARE)
    holes = [f"{found} is public" for found in share.seen()]
    holes += [] if share.seen("g:share").get(share.own.as_uri()) == OWN else ["the file is not there"]
    holes += [f"{name} is not there" for name in names if name not in share.seen("g:share")]
    (share.root / "f.jsonl").unlink()
    share.run(*SHARE)
    holes += [f"{name} stays" for name in names if name in share.seen("g:share")]
    judge(record_property, "stamps of a JSONL", against="index", tried=len(forged), holes=holes)


def test_runs_at_the_same_time(share: Share, record_property: Record) -> None:
    for number in range(30):
        (share.root / f"{number}.txt").write_text(OWN)
    share.run()
    arguments = [sys.executable, "-c", COMMAND, str(share.root), "--again", "--conf", str(share.conf)]
    runs = [subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(4)]
    holes = []
    for run in runs:
        _, stderr = run.communicate(timeout=120)
        if run.returncode and b"Another program is writing" not in stderr:
            holes.append(stderr.decode())
    share.run()
    holes += [] if len(share.seen()) == 31 else [f"{len(share.seen())} documents"]
    judge(record_property, "runs at the same time", against="index", tried=len(runs), holes=holes)


COMMAND = "from datafari_rag.commands.index import index; index()"

IDS = ["\0", "a\0b", "\ud800", "a\udfff", "x" * 4096, "\u202e", "\n", " ", "*", "id:*", '"', "../..", "__nosecurity__"]


def test_ids_and_fields_of_a_jsonl(share: Share, record_property: Record) -> None:
    rows: list[dict[str, object]] = [{"id": one, "content": "t"} for one in IDS]
    names = ("title", "url", "source", "language", "extension", "preview_content", "last_modified", *ACL_FIELDS)
    values: list[object] = [
        "x" * 100_000, "\0", "\ud800", {}, [], [[]], 7, True, None, [None], "9999-12-31T23:59:59-23:59", ["t"] * 20_000,
    ]  # fmt: skip
    rows += [
        {"id": f"{a}-{b}", "content": "t", name: value}
        for a, name in enumerate(names)
        for b, value in enumerate(values)
    ]
    share.lines("a.jsonl", *rows)
    result = share.run(*SHARE)
    holes = [f"{found!r} is public" for found in share.seen()]
    if share.seen("g:share").get(share.own.as_uri()) != OWN:
        holes.append(f"the colleague's file is not there: {result.stderr[-500:]}")
    judge(record_property, "ids and fields of a .jsonl", against="index", tried=len(rows), holes=holes)


@pytest.fixture
def deep(share: Share) -> Iterator[None]:
    """Nest 3,000 folders in the share, more than a path can name, and take them away: pytest itself cannot."""
    number = os.open(share.root, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=number)
        inner = os.open("deep", os.O_RDONLY, dir_fd=number)
        os.close(number)
        number = inner
    os.close(number)
    yield
    subprocess.run(["rm", "-rf", str(share.root)], check=True)


@pytest.mark.slow
@pytest.mark.usefixtures("deep")
def test_very_many_and_very_large_files(share: Share, record_property: Record) -> None:
    """100,000 empty files, folders nested 3,000 deep, a line of 1 GB, a packed one of 2 GB, and a bomb of each kind."""
    for number in range(100_000):
        folder = share.root / f"{number % 100}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").touch()
    with (share.root / "line.jsonl").open("wb") as file:
        file.truncate(1_000_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + json.dumps({"id": "behind", "content": "t"}).encode())
    with gzip.open(share.root / "line.jsonl.gz", "wb") as packed:
        for _ in range(2000):
            packed.write(b"0" * 1_000_000)
    with (share.root / "large.html").open("wb") as file:
        file.truncate(199_000_000)
    with zipfile.ZipFile(share.root / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as bomb:
        for number in range(6):
            bomb.writestr(f"word/{number}.xml", b"\0" * 100_000_000)
    word_file(share.root / "paragraphs.docx", "<w:p/>" * 20_000_000)
    result = share.run()
    holes = [] if share.seen().get(share.own.as_uri()) == OWN else [f"the run did not end well: {result.stderr[-900:]}"]
    if "behind" not in share.seen():
        holes.append("the line behind a long one is not there")
    judge(record_property, "very many and very large files", against="index", tried=100_007, holes=holes)
