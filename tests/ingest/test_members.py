"""Files in files become documents of their own, under the outer file's id and with its rights, within bounds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.ingest import run
from datafari_rag.ingest.documents import Rights
from datafari_rag.ingest.sandbox import MemoryExceeded, Sandbox
from datafari_rag.ingest.sandbox_child import Job
from tests.ingest.house import House, lines
from tests.ingest.parsers.written import WRITERS, loop_zip, mail, zip_of


def test_members_of_one_name_are_told_apart_and_come_after_their_container(house: House) -> None:
    inner = zip_of(house.root / "in.zip", ("c.txt", b"c"), ("d.exe", b"MZ"))
    with pytest.warns(UserWarning, match="Duplicate name"):
        zip_of(house.root / "a.zip", ("in.zip", inner.read_bytes()), ("b.txt", b"one"), ("b.txt", b"two"))
    inner.unlink()
    house.run()
    assert [name.rpartition("#")[2] for name in house.writer.written] == ["b.txt", "b.txt%20%282%29", "in.zip!/c.txt"]
    assert house.heard.failures == []


@pytest.mark.parametrize(("bound", "why"), [("MAX_MEMBERS", run.TOO_MANY), ("CONTAINER_SHARE", run.TOO_LONG)])
def test_number_and_time_have_bounds(house: House, monkeypatch: pytest.MonkeyPatch, bound: str, why: str) -> None:
    monkeypatch.setattr(run, bound, 2)
    zip_of(house.root / "a.zip", *((f"{number}.txt", b"words") for number in range(5)))
    ticks = iter(range(0, 10_000, 50))
    house.run(**({} if bound == "MAX_MEMBERS" else {"clock": lambda: float(next(ticks))}))
    assert house.names == ["a.zip#0.txt", "a.zip#1.txt"]
    assert [(Path(where).name, what) for where, what in house.heard.failures] == [("a.zip", why)]


def test_attachments_and_members_are_documents_under_the_outer_file(house: House) -> None:
    zip_of(house.root / "a.zip", ("b/c d.txt", b"words"), ("e.eml", mail(("f.csv", b"x,y\n1,2")).as_bytes()))
    house.run()
    root = (house.root / "a.zip").as_uri()
    assert set(house.writer.found) == {f"{root}#b/c%20d.txt", f"{root}#e.eml", f"{root}#e.eml!/f.csv"}
    document = house.writer.found[f"{root}#e.eml!/f.csv"]
    assert (document["title"], document["extension"], document["source"]) == ("f.csv", "csv", "files")
    assert document["place_marks"] == "0 row 1" and document["url"] == document["id"]
    assert house.heard.failures == []


def test_members_have_the_rights_of_their_file_and_no_others(house: House) -> None:
    zip_of(
        house.root / "a.zip",
        ("b.txt", b"words"),
        ("c.jsonl", b'{"id": "public", "content": "x", "allow_token_document": ["everybody"]}\n'),
    )
    house.run(rights=Rights(("g:hr",), ("g:out",)))
    assert house.names == ["a.zip#b.txt"]
    (document,) = house.writer.found.values()
    assert [document[name] for name in ACL_FIELDS if name.endswith("_document")] == [["g:hr"], ["g:out"]]
    house.run(rights=Rights(("g:management",)))
    (document,) = house.writer.found.values()
    assert document["allow_token_document"] == ["g:management"]


def test_a_member_that_is_gone_leaves_the_engine_and_others_stay(house: House) -> None:
    path = house.root / "a.zip"
    zip_of(path, ("b.txt", b"words"), ("c.txt", b"others"))
    house.run()
    first = path.stat()
    zip_of(path, ("c.txt", b"others"))
    # The time of the file is that of its members: in another second they would have changed.
    os.utime(path, ns=(first.st_atime_ns, first.st_mtime_ns + 1))
    outcome = house.run()
    assert (house.names, outcome.documents, outcome.removed) == (["a.zip#c.txt"], 1, 1)
    path.unlink()
    assert (house.run().removed, house.names) == (1, [])


def test_a_jsonl_cannot_take_the_id_of_a_member(house: House) -> None:
    path = house.root / "a.zip"
    zip_of(path, ("b.txt", b"words"))
    house.write("z.jsonl", lines(f"{path.as_uri()}#b.txt", content="false"))
    house.run()
    assert [document["exactContent"] for document in house.writer.found.values()] == ["words"]


def test_what_is_wrong_in_a_file_is_named_with_the_way_to_it_and_the_others_are_taken(house: House) -> None:
    zip_of(house.root / "a.zip", ("b.docx", b"nothing"), ("c.txt", b"words"), ("deep.zip", loop_zip(5)))
    house.write("good.txt", "good")
    outcome = house.run()
    assert [(Path(where).name, why) for where, why in house.heard.failures] == [
        ("a.zip#b.docx", "This DOCX is broken."),
        ("a.zip#deep.zip#in.zip#in.zip", run.TOO_DEEP),
    ]
    assert (outcome.problems, house.names) == (2, ["a.zip#c.txt", "good.txt"])


class Starved(Sandbox):
    """A reader whose process has too little memory for HTML in a file."""

    def _answers(self, job: Job, file: int) -> Iterator[dict[str, Any]]:
        if job.inside and job.inside[-1][1] == ".html":
            raise MemoryExceeded("Reading it needed more than 700 MB of memory.")
        yield from super()._answers(job, file)


def test_a_member_that_needs_too_much_is_not_read_again_until_the_file_changes(tmp_path: Path) -> None:
    with Starved() as reader:
        house = House(tmp_path, reader)
        path = zip_of(house.root / "a.zip", ("large.html", b"<p>a"), ("good.txt", b"good"))
        house.run()
        ((where, why),) = house.heard.failures
        assert house.names == ["a.zip#good.txt"] and where.endswith("a.zip#large.html")
        house.run()
        assert house.heard.failures == [(where, f"{why} It is not read again until it changes.")]
        os.utime(path, (1, 1))
        house.run()
        assert house.names == ["a.zip#good.txt"] and house.heard.failures == [(where, why)]


@pytest.mark.parametrize("kind", WRITERS)
def test_every_kind_of_file_is_taken_from_a_folder(house: House, kind: str) -> None:
    WRITERS[kind](house.root / f"a.{kind}")
    assert house.run().problems == 0
    assert any("sg.vpn.example.org" in str(document["exactContent"]) for document in house.writer.found.values())
