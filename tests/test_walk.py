"""
How far one question walks through the code: modules, functions and hops between modules that a reader would follow.

Numbers that may fall and not rise: a corridor that is added here is one that every newcomer walks. Each is what was
measured when it was written down, with a few more, since pieces of the reply arrive together or apart. Only a
change that makes something else much shorter is a reason to raise one.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from importlib import resources
from itertools import pairwise
from pathlib import Path
from types import FrameType

from click.testing import CliRunner

import datafari_rag
from datafari_rag.bootstrap import create_app
from datafari_rag.commands.main import main
from tests.stub import running_stub

MODULES, FUNCTIONS, HOPS = 79, 650, 1640

ROOT = str(Path(datafari_rag.__file__).parent)
BEFORE = ("How do I copy a file?", "What does VACUUM reclaim?", "How are lists sorted?")
QUESTION = "Which authentication methods may a server ask of its clients?"


def walked(conf: Path) -> list[tuple[str, str]]:
    """Return the module and the function of each call that one question makes, after three others that warm up."""
    client = create_app(str(conf)).test_client()
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        # Lambdas, comprehensions and generator expressions belong to the function around them.
        if event == "call" and code.co_filename.startswith(ROOT) and not code.co_qualname.endswith(">"):
            calls.append((code.co_filename, code.co_qualname))

    def ask(question: str) -> None:
        asked = {"action": "rag", "q": question}
        reply = client.get("/search/select", query_string=asked, headers={"X-Remote-User": "bob"})
        assert reply.status_code == 200, reply.text

    for question in BEFORE:
        ask(question)
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        ask(QUESTION)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


def test_one_question_walks_no_farther_than_before(tmp_path: Path) -> None:
    """Asked over an embedded index of words, with a model's server, in a process that has answered other questions."""
    demo = resources.files("datafari_rag.resources") / "demo" / "docs.jsonl.gz"
    documents = gzip.decompress(demo.read_bytes()).decode().splitlines()
    (tmp_path / "docs.jsonl").write_text(
        "".join(
            json.dumps({key: json.loads(line)[key] for key in ("id", "title", "url", "content")}) + "\n"
            for line in documents[:200:8]
        )
    )
    (tmp_path / "users.json").write_text("{}")
    conf = tmp_path / "rag.properties"
    with running_stub() as stub:
        rows = {
            "solr.url": f"embedded:{tmp_path / 'index'}",
            "rag.template": "openai",
            "rag.api.endpoint": stub.url,
            "security.identity": "header",
            "security.tokens": "file",
            "security.tokens.file": tmp_path / "users.json",
        }
        conf.write_text("".join(f"{key}={value}\n" for key, value in rows.items()))
        conf.chmod(0o600)
        done = CliRunner().invoke(main, ["index", str(tmp_path / "docs.jsonl"), "--conf", str(conf)])
        assert done.exit_code == 0, done.output
        calls = walked(conf)
    modules = [module for module, _ in calls]
    hops = sum(one != other for one, other in pairwise(modules))
    took = {"modules": len(set(modules)), "functions": len(set(calls)), "hops": hops}
    assert took["modules"] <= MODULES
    assert took["functions"] <= FUNCTIONS
    assert took["hops"] <= HOPS
