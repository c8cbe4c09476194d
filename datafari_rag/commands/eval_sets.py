"""The sets of a folder merged into one collection, in the embedded index and in a real Solr, to be measured on both."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from datafari_rag.adapters import solr_process
from datafari_rag.adapters.solr_jars import CannotRunSolr
from datafari_rag.commands.index import Lines, indexed, settings_for
from datafari_rag.evaluation.questions import Question, Reader, questions_in, readers_in, rights_in
from datafari_rag.ingest.documents import Rights

MERGED = (
    "squad", "piaf-fr", "servicepublic-fr", "covidqa", "cuad", "nq-longdoc", "scifact", "northwind-hr", "tts-handbook",
    "debian-docs", "tech-docs",
)  # fmt: skip
"""Sets that are merged into one collection; the others have questions that need several documents, or attacks."""

Say = Callable[[str], None]


class NoSets(Exception):
    """The folder holds none of the sets, or Solr cannot be run; the message says which."""


def questions_of(folder: Path) -> tuple[Question, ...]:
    """Return the questions of all merged sets, the unanswerable ones too. Raises: NoSets, UnreadableQuestions."""
    files = [path / name for path in _sets(folder) for name in ("questions.jsonl", "unanswerable.jsonl")]
    return tuple(itertools.chain.from_iterable(questions_in(path) for path in files if path.exists()))


def readers_of(folder: Path) -> tuple[Reader, ...]:
    """Return the users of the sets that have some."""
    files = [path / "users.jsonl" for path in _sets(folder)]
    found = itertools.chain.from_iterable(readers_in(path) for path in files if path.exists())
    return tuple({reader.name: reader for reader in found}.values())


def rights_of(folder: Path) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the ACL fields of the documents that have some, by id."""
    found: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for path in _sets(folder):
        found |= {name: acl for name, acl in rights_in(path / "docs.jsonl").items() if acl}
    return found


@contextmanager
def engines(folder: Path, which: str, say: Say) -> Iterator[Iterator[tuple[str, str]]]:
    """
    Give the name and the `solr.url` of each engine in turn, the merged sets indexed in it.

    Documents keep their rights. Solr is stopped, and everything is removed, at the end.

    Raises:
        NoSets: nothing to index, or Solr cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="datafari-rag-eval-") as place:
        documents = Path(place) / "documents.jsonl"
        _merge(folder, documents)
        try:
            yield _engines(Path(place), documents, which, say)
        finally:
            if (Path(place) / "solr").exists():
                solr_process.stopped(Path(place) / "solr")


def _engines(place: Path, documents: Path, which: str, say: Say) -> Iterator[tuple[str, str]]:
    if which in ("embedded", "both"):
        url = f"embedded:{place / 'index'}"
        _index(documents, url, say)
        yield "embedded", url
    if which in ("solr", "both"):
        try:
            url = solr_process.started(place / "solr", port=None, nodes=0, say=say).url
        except CannotRunSolr as error:
            raise NoSets(str(error)) from error
        _index(documents, url, say)
        yield "Solr", url


def _index(documents: Path, url: str, say: Say) -> None:
    say(f"Indexing into {url.partition(':')[0]} …")
    conf = documents.with_name("index.properties")
    conf.write_text(f"solr.url={url}\n", encoding="utf-8")
    conf.chmod(0o600)
    indexed([documents], settings=settings_for(conf), rights=Rights(), listener=Lines())


def _merge(folder: Path, into: Path) -> None:
    with into.open("w", encoding="utf-8") as out:
        for path in _sets(folder):
            with (path / "docs.jsonl").open(encoding="utf-8") as lines:
                for line in lines:
                    out.write(json.dumps(json.loads(line), ensure_ascii=False) + "\n")


def _sets(folder: Path) -> list[Path]:
    found = [folder / name for name in MERGED if (folder / name / "docs.jsonl").exists()]
    if not found:
        raise NoSets(f"{folder} holds none of the sets {', '.join(MERGED)}.")
    return found
