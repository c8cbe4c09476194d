"""What is measured, and what it depends on: the stubs, the service with its real server, a peer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.corpus import write_answers
from benchmarks.measuring import Target
from benchmarks.processes import NotStarted, Running, fetch, free_port, running

HERE = Path(__file__).parent
VENVS = HERE.parent / ".venvs"
TOKENS = 50
"""Rights of the user who asks."""

CHAT = "/v1/chat/completions"
USER = "X-Remote-User: bench"
MODELS = {"Haystack": "rag"}
"""Where the model's name is not the stub's: Hayhooks calls a pipeline by its folder."""


@dataclass(frozen=True, slots=True)
class Stubs:
    """The stub Solr and the stub model, for one folder of files."""

    solr: Running
    model: Running
    folder: Path
    seen: dict[str, float] = field(default_factory=dict)
    """What the model itself was measured at, by the pace's name."""

    def pace(self, *, first_ms: float = 0, interval_ms: float = 100, tokens: int = 50) -> None:
        """Set how the model speaks from now on."""
        body = {"first_ms": first_ms, "interval_ms": interval_ms, "tokens": tokens}
        fetch(self.model.port, "/pace", json.dumps(body).encode())

    def both(self) -> tuple[Running, ...]:
        """Return them."""
        return (self.solr, self.model)


@contextmanager
def stubs(folder: Path, **answers: int) -> Iterator[Stubs]:
    """Run both; *answers* says what Solr's are like, see `write_answers`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_answers(folder / "answers.json", **answers)
    with ExitStack() as stack:
        solr, model = free_port(), free_port()
        command = ["node", HERE / "stub_solr.js", str(solr), folder / "answers.json"]
        first = stack.enter_context(running(command, port=solr, log=folder / "solr.log"))
        second = stack.enter_context(
            running(["node", HERE / "stub_model.js", str(model)], port=model, log=folder / "model.log")
        )
        yield Stubs(first, second, folder)


@contextmanager
def service(behind: Stubs, *, workers: int = 2, tokens: int = TOKENS, **settings: str) -> Iterator[Target]:
    """Run the service with its production server over both stubs, for a user with *tokens* rights."""
    conf, users = behind.folder / "rag.properties", behind.folder / "users.json"
    users.write_text(json.dumps({"bench": [f"group-{number}" for number in range(tokens - 1)]}), encoding="utf-8")
    values = {
        "solr.url": f"http://127.0.0.1:{behind.solr.port}/solr/bench",
        "rag.api.endpoint": f"http://127.0.0.1:{behind.model.port}{CHAT}",
        "rag.api.token": "none",
        "security.identity": "header",
        "security.tokens.file": str(users),
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    conf.write_text("".join(f"{key}={value}\n" for key, value in values.items()), encoding="utf-8")
    conf.chmod(0o600)
    port = free_port()
    command = [sys.executable, "-m", "datafari_rag", "serve", "--conf", conf, "--port", str(port)]
    command += ["--workers", str(workers)]
    with running(command, port=port, log=behind.folder / "service.log", listeners=workers) as found:
        yield Target("datafari-rag", port, found, behind.both())


def program(venv: str, name: str) -> Path:
    """Return a program of a peer's environment. Raises: NotStarted when it is not installed."""
    found = VENVS / venv / "bin" / name
    if not found.exists():
        raise NotStarted(f"{name} is not installed in .venvs/{venv}: .ci/setup peers")
    return found


def direct(behind: Stubs) -> Target:
    """Return the stub model itself."""
    return Target("direct", behind.model.port, None, (behind.model,))


def asking(target: Target, *, is_streamed: bool) -> dict[str, object]:
    """Return how *target* is asked one question, for a plan; *done* is the mark of a stream that came to its end."""
    if target.name == "datafari-rag" and not is_streamed:
        return {"method": "GET", "path": "/search/select?action=rag&q=QUESTION", "headers": [USER]}
    body: dict[str, object] = {"messages": [{"role": "user", "content": "QUESTION"}]}
    if target.name == "datafari-rag":
        done = '{"delta":{},"context":{"citations"'
        return {"method": "POST", "path": "/chat/stream", "headers": [USER], "body": json.dumps(body), "done": done}
    body |= {"model": MODELS.get(target.name, "stub"), "stream": is_streamed}
    done = '"finish_reason":"stop"' if target.name == "Haystack" else "[DONE]"
    return {"method": "POST", "path": CHAT, "headers": [USER], "body": json.dumps(body), "done": done}
