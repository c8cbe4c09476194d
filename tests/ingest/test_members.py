"""Files in files become documents of their own, under the outer file's id and with its rights, within bounds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.ingest import run
from datafari_rag.ingest.documents import Rights
from datafari_rag.ingest.parsers.parsed import Parsed
from datafari_rag.ingest.run import Member, MemberPlace, Members
from datafari_rag.ingest.sandbox import Sandbox, SandboxLimits
from tests.ingest.house import House, lines
from tests.ingest.parsers.written import WRITERS, loop_zip, mail, zip_of

TEXT = Parsed("text")


def walked(tree: dict[tuple[str, ...], Parsed | str], top: Parsed, *, over_after: int = 10**6) -> list[Member]:
    count = iter(range(10**6))
    return [*Members(lambda place: tree[place.names], lambda: next(count) >= over_after).of(top)]


def test_each_member_comes_once_containers_before_what_is_in_them() -> None:
    inner = Parsed("", members=("c.txt", "d.exe"))
    tree = {("a.zip",): inner, ("b.txt",): TEXT, ("a.zip", "c.txt"): TEXT}
    found = walked(tree, Parsed("", members=("a.zip", "b.txt")))
    assert [one.names for one in found] == [("a.zip",), ("b.txt",), ("a.zip", "c.txt")]


def test_members_of_one_name_are_told_apart() -> None:
    tree = {("a.txt",): TEXT, ("a.txt (2)",): Parsed("other")}
    assert [one.content for one in walked(tree, Parsed("", members=("a.txt", "a.txt")))] == [TEXT, Parsed("other")]


def test_a_member_that_cannot_be_read_stops_no_other() -> None:
    tree: dict[tuple[str, ...], Parsed | str] = {("a.pdf",): "It is broken.", ("b.txt",): TEXT}
    assert walked(tree, Parsed("", members=("a.pdf", "b.txt"))) == [
        Member(("a.pdf",), None, "It is broken."),
        Member(("b.txt",), TEXT),
    ]


def test_depth_number_and_time_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Parsed("", members=("a.zip",))
    found = [*Members(lambda place: loop, lambda: False).of(loop)]
    assert (len(found), found[-1].problem) == (run.MAX_DEPTH + 1, run.TOO_DEEP)

    many = Parsed("", members=tuple(f"{n}.txt" for n in range(run.MAX_MEMBERS + 5)))
    found = [*Members(lambda place: TEXT, lambda: False).of(many)]
    assert (len(found), found[-1]) == (run.MAX_MEMBERS + 1, Member((), None, run.TOO_MANY))

    found = walked({(f"{n}.txt",): TEXT for n in range(9)}, many, over_after=2)
    assert [one.problem for one in found] == ["", "", run.TOO_LONG]


def test_the_way_in_tells_the_parsers_endings_alone() -> None:
    places: list[MemberPlace] = []

    def read(place: MemberPlace) -> Parsed:
        places.append(place)
        return TEXT

    assert len([*Members(read, lambda: False).of(Parsed("", members=("x.exe", "../../A.TXT")))]) == 1
    assert places == [MemberPlace(("../../A.TXT",), ((1, ".txt"),))]


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
    assert (house.names, outcome.documents, outcome.removed) == (["a.zip#c.txt"], 0, 1)
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


def test_a_member_that_needs_too_much_is_not_read_again_until_the_file_changes(tmp_path: Path) -> None:
    with Sandbox(SandboxLimits(2.0, 700)) as reader:
        house = House(tmp_path, reader)
        # Blocks of so large a page need many times the two seconds.
        zip_of(house.root / "a.zip", ("slow.html", b"<p>a" * 3_000_000), ("good.txt", b"good"))
        house.run()
        ((where, why),) = house.heard.failures
        assert house.names == ["a.zip#good.txt"] and where.endswith("a.zip#slow.html")
        assert "took longer" in why or "more than 700 MB" in why
        house.run()
        assert house.names == ["a.zip#good.txt"]
        assert house.heard.failures == [(where, f"{why} It is not read again until it changes.")]


@pytest.mark.parametrize("kind", WRITERS)
def test_every_kind_of_file_is_taken_from_a_folder(house: House, kind: str) -> None:
    WRITERS[kind](house.root / f"a.{kind}")
    assert house.run().problems == 0
    assert any("sg.vpn.example.org" in str(document["exactContent"]) for document in house.writer.found.values())
