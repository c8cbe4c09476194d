"""
Questions with known answers and claims with known labels, as JSON Lines, and the sets of a folder merged into one
collection, in the embedded index and in a real Solr, to be measured on both.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from datafari_rag.commands.index import indexed, settings_for
from datafari_rag.commands.passages import synced
from datafari_rag.commands.terminal import ProblemListener
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.ingest.documents import Rights
from datafari_rag_trials import resources
from datafari_rag_trials.solr import process as solr_process
from datafari_rag_trials.solr.jars import CannotRunSolr

REWORDED = ("reworded", "no-shared-words")
"""
The groups of questions in other words, by the names of their files, counted separately: their questions already belong
to sets of their own. In the second no content word is shared with the sentence that answers, or with the title.
"""


class UnreadableQuestions(ValueError):
    """A file is not JSON Lines of questions, or of claims; the message says file, line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Question:
    """
    One question: any of *answers* counts, any of *document_ids* is right.

    A question that the collection cannot answer has *is_answerable* False; one without verbatim answers has none;
    one that *needs_all* has found its document when it has found the last of them. *group* is the set that it is
    counted in, *language* what its file says of it, "" mostly. *unit* is the row, item or step that answers, as it
    is in the document, *kind* which of these it is; "" where the answer is in running text.
    """

    id: str
    group: str
    text: str
    answers: tuple[str, ...] = ()
    document_ids: frozenset[str] = frozenset()
    is_answerable: bool = True
    needs_all: bool = False
    language: str = ""
    unit: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class LeakReader:
    """A user with their tokens, for the count of leaks."""

    name: str
    tokens: frozenset[str]


def questions_in(path: Path, group: str | None = None) -> tuple[Question, ...]:
    """
    Return the questions of the file *path*, counted in *group* (default: the folder's name).

    Raises:
        UnreadableQuestions: a line is not a question.
        OSError: the file cannot be read.
    """
    name = group or path.resolve().parent.name
    return tuple(_question(row, name, where, path.parent) for where, row in rows_of(path))


def reworded_in(path: Path, originals: Iterable[Question]) -> tuple[Question, ...]:
    """
    Return the questions of *path* in other words, with the answers and documents of those *originals* they go back to.

    A line is {set, source, question}; one whose source is not known is left out. The file's name is their group.

    Raises:
        UnreadableQuestions: a line is not a reworded question.
        OSError: the file cannot be read.
    """
    sources = {(question.group, question.id): question for question in originals}
    questions = []
    for where, row in rows_of(path):
        text = row.get("question")
        if not isinstance(text, str) or not text.strip():
            raise UnreadableQuestions(f"{where}: a question needs a text under 'question'")
        source = sources.get((str(row.get("set")), str(row.get("source"))))
        if source is not None:
            questions.append(replace(source, id=f"{path.stem} {source.id}", group=path.stem, text=text))
    return tuple(questions)


def readers_in(path: Path) -> tuple[LeakReader, ...]:
    """Return the users of the file *path*: lines of {user, tokens}. Raises: UnreadableQuestions, OSError."""
    readers: dict[str, frozenset[str]] = {}
    for where, row in rows_of(path):
        if not isinstance(row.get("user"), str):
            raise UnreadableQuestions(f"{where}: a user needs a name under 'user'")
        readers.setdefault(str(row["user"]), frozenset(map(str, _list(row, "tokens"))))
    return tuple(LeakReader(user, tokens) for user, tokens in readers.items())


def rights_in(path: Path) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the ACL fields of the documents of *path* by their id. Raises: UnreadableQuestions, OSError."""
    return {
        str(row.get("id")): {key: tuple(map(str, _list(row, key))) for key in row if "_token_" in key}
        for _, row in rows_of(path)
    }


def _question(row: Mapping[str, object], group: str, where: str, folder: Path) -> Question:
    text = row.get("question")
    if not isinstance(text, str) or not text.strip():
        raise UnreadableQuestions(f"{where}: a question needs a text under 'question'")
    return Question(
        id=str(row.get("id", where)),
        group=str(row.get("set") or group),
        text=text,
        answers=tuple(map(str, _list(row, "answers"))),
        document_ids=frozenset(_identity(str(name), folder) for name in _list(row, "doc_ids")),
        is_answerable=not row.get("unanswerable", False),
        needs_all=row.get("need") == "all",
        language=str(row.get("language") or ""),
        unit=str(row.get("unit") or ""),
        kind=str(row.get("kind") or ""),
    )


def _identity(text: str, folder: Path) -> str:
    """Return the id of the document *text*: of a file in *folder*, and what is in it, the one that `index` gives it."""
    name, mark, member = text.partition("#")
    path = folder / name
    return f"{path.resolve().as_uri()}{mark}{member}" if path.is_file() else text


def _list(row: Mapping[str, object], key: str) -> list[object]:
    value = row.get(key) or []
    return value if isinstance(value, list) else [value]


def rows_of(path: Path) -> Iterable[tuple[str, Mapping[str, object]]]:
    """Yield the objects of the file *path* with file and line of each. Raises: UnreadableQuestions, OSError."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"{path}:{number}", _row(line, f"{path}:{number}")


def _row(line: str, where: str) -> Mapping[str, object]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UnreadableQuestions(f"{where}: this is not JSON") from error
    if not isinstance(row, dict):
        raise UnreadableQuestions(f"{where}: this is not an object")
    return row


GROUPS = {"up": "liked", "down": "disliked"}


MERGED = (
    "squad", "piaf-fr", "servicepublic-fr", "covidqa", "cuad", "nq-longdoc", "scifact", "northwind-hr", "tts-handbook",
    "debian-docs", "tech-docs",
)  # fmt: skip
"""Sets that are merged into one collection."""

ACROSS = "xquad-across"
"""The questions of xquad in its other languages about its English documents."""

FOLDERS = {ACROSS: "xquad"}
"""Sets whose files are in the folder of another one."""

ALONE = ("xquad", ACROSS, "multihop", "structure")
"""Sets measured separately, each in its own index: six languages; several documents; rows, items and slides."""

COLLECTIONS = ("merged", *ALONE)
"""What can be measured, in this order."""

PACKAGED = {"structure": ("tts-handbook", "debian-docs", "tech-docs")}
"""Sets that come with the package, and the sets of the folder that are indexed with them: they ask about these too."""

IN_STEPS: Mapping[tuple[str, ...], tuple[str, ...]] = {("multihop",): ("minimal",)}
"""Sets that are measured with search in steps as well, unless something is varied, and the values of `rag.effort`."""

BY_LANGUAGE, BY_KIND, BY_EVIDENCE = "xquad", "structure", "scifact"
"""
The sets whose languages, and whose kinds of answers, are counted apart, and the one where those questions are that no
document answers: their right document is one that an expert named for them.
"""

PATIENT = {"solr.limits.wait_s": "120"}
"""
On a machine with other work Solr may need longer than a reader would wait.

The second limit holds while a request is sent, too: a thousand documents are megabytes.
"""

RESOURCES = Path(resources.__file__).parent / "evaluation"

Say = Callable[[str], None]


class NoSets(Exception):
    """The folder holds none of the sets, or Solr cannot be run; the message says which."""


@dataclass(frozen=True, slots=True)
class IndexedEngine:
    """An engine with an index: the *name* to show, its *url*, and the sets in it."""

    name: str
    url: str
    sets: tuple[str, ...] = MERGED


def questions_of(folder: Path, sets: tuple[str, ...] = MERGED) -> tuple[Question, ...]:
    """Return the questions of *sets*, also the unanswerable and the reworded ones. Raises: UnreadableQuestions."""
    paths = [path / name for path in _sets(folder, sets) for name in ("questions.jsonl", "unanswerable.jsonl")]
    questions = tuple(itertools.chain.from_iterable(questions_in(path) for path in paths if path.exists()))
    bases = tuple(_across(questions)) if ACROSS in sets else questions
    in_groups = tuple(replace(question, group=_group_of(question)) for question in bases)
    files = [RESOURCES / "reworded" / f"{name}.jsonl" for name in REWORDED]
    return (*in_groups, *itertools.chain.from_iterable(reworded_in(file, bases) for file in files))


def _group_of(question: Question) -> str:
    if question.group == BY_EVIDENCE and not question.answers:
        return f"{question.group} without evidence"
    is_by_language = question.group in (BY_LANGUAGE, ACROSS)
    part = question.language if is_by_language else question.kind if question.group == BY_KIND else ""
    return f"{question.group} {part}" if part else question.group


def _across(questions: Sequence[Question]) -> Iterator[Question]:
    """Yield those of *questions* that are not English, with the answers and documents of the English ones."""
    english = {question.id.partition("-")[2]: question for question in questions if question.language == "en"}
    for question in questions:
        source = english.get(question.id.partition("-")[2])
        if source is not None and question is not source:
            yield replace(source, id=question.id, group=ACROSS, text=question.text, language=question.language)


def readers_of(folder: Path) -> tuple[LeakReader, ...]:
    """Return the users of the sets that have some."""
    files = [path / "users.jsonl" for path in _sets(folder, MERGED)]
    readers = itertools.chain.from_iterable(readers_in(path) for path in files if path.exists())
    return tuple({reader.name: reader for reader in readers}.values())


def rights_of(folder: Path) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the ACL fields of the documents that have some, by id."""
    rights: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for path in _sets(folder, MERGED):
        rights |= {name: acl for name, acl in rights_in(path / "docs.jsonl").items() if acl}
    return rights


@dataclass(frozen=True, slots=True)
class Indexing:
    """
    What is indexed: the sets of *folder* in the *engine* ("both" for both), those *collections*.

    Documents have vectors where *vectors* (settings as they are written) names an embedding model. With *store*, a
    folder, indexes stay there, and those that are there are not made again.
    """

    folder: Path
    engine: str = "both"
    collections: tuple[str, ...] = COLLECTIONS
    vectors: Mapping[str, str] = field(default_factory=dict)
    store: Path | None = None


@contextmanager
def places(indexing: Indexing, say: Say) -> Iterator[Iterator[IndexedEngine]]:
    """
    Give each engine in turn, the sets indexed in it: the merged ones, then each of the others alone.

    Documents keep their rights. Every Solr is stopped at the end, and everything is removed that is not to be kept.

    Raises:
        NoSets: nothing to index, or Solr cannot be run.
    """
    if not _sets(indexing.folder, MERGED):
        raise NoSets(f"{indexing.folder} holds none of the sets {', '.join(MERGED)}.")
    with tempfile.TemporaryDirectory(prefix="datafari-rag-eval-") as temporary:
        store = indexing.store or Path(temporary)
        store.mkdir(parents=True, exist_ok=True)
        try:
            yield _places(indexing, store.absolute(), say)
        finally:
            for home in store.glob("solr-*"):
                solr_process.stopped(home)


def _places(indexing: Indexing, store: Path, say: Say) -> Iterator[IndexedEngine]:
    folder, put = indexing.folder, partial(into_index, say=say, vectors=indexing.vectors)
    for name in indexing.collections:
        sets, suffix = (MERGED, "") if name == COLLECTIONS[0] else ((name,), f", {name} alone")
        beside = PACKAGED.get(name, ())
        if not _sets(folder, sets) or len(_sets(folder, beside)) < len(beside):
            continue
        documents = _merged(folder, (*sets, *beside), store / f"{name}.jsonl")
        digest = hashlib.sha256(documents.read_bytes() + repr(sorted(indexing.vectors.items())).encode()).hexdigest()
        if indexing.engine in ("embedded", "both"):
            home = store / f"{name}-{digest[:8]}"
            yield IndexedEngine(f"embedded{suffix}", put(documents, f"embedded:{home}", home), sets)
        if indexing.engine in ("solr", "both"):
            home = store / f"solr-{name}-{digest[:8]}"
            yield IndexedEngine(f"Solr{suffix}", put(documents, _solr(home, say), home), sets)
            solr_process.stopped(home)


def _solr(home: Path, say: Say) -> str:
    try:
        return solr_process.started(home, port=None, nodes=0, say=say).url
    except CannotRunSolr as error:
        raise NoSets(str(error)) from error


def into_index(documents: Path, url: str, home: Path, *, say: Say, vectors: Mapping[str, str]) -> str:
    """Index *documents* into *url*, unless the folder *home* holds them already, and return *url*."""
    mark = home.with_name(f"{home.name}.indexed")
    if mark.exists():
        say(f"{documents.stem} is in {url.partition(':')[0]} already.")
        return url
    say(f"Indexing {documents.stem} into {url.partition(':')[0]} …")
    conf = documents.with_suffix(".properties")
    conf.write_text(
        "".join(f"{key}={value}\n" for key, value in {"solr.url": url, **PATIENT, **vectors}.items()), encoding="utf-8"
    )
    conf.chmod(0o600)
    settings = settings_for(conf)
    indexed([documents], settings=settings, rights=Rights(), listener=ProblemListener())
    if settings.embeddings.endpoint and not url.startswith(EMBEDDED):
        synced(settings, ProblemListener())
    mark.touch()
    return url


def _merged(folder: Path, sets: tuple[str, ...], into: Path) -> Path:
    with into.open("w", encoding="utf-8") as out:
        for path in _sets(folder, sets):
            with (path / "docs.jsonl").open(encoding="utf-8") as lines:
                merged = (
                    lines if ACROSS not in sets else (line for line in lines if json.loads(line)["language"] == "en")
                )
                out.writelines(f"{line.rstrip()}\n" for line in merged)
    return into


def _sets(folder: Path, names: tuple[str, ...]) -> list[Path]:
    paths = [RESOURCES / name if name in PACKAGED else folder / FOLDERS.get(name, name) for name in names]
    return [path for path in paths if (path / "docs.jsonl").exists()]
