"""The parts of the fault matrix: everything that the service depends on, as real processes, each with faults."""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from datafari_rag.adapters.solr.factory import writer_for
from datafari_rag_trials.solr import process as solr_process
from tests.end_to_end.processes import Running, service, stub_llm
from tests.real_solr import running
from tests.settings import settings_with
from tests.support.server import Asked, Loopback, Reply, serving
from tests.support.waiting import HANGS_S, until
from tests.support.wire import Wire, wire_to

PATIENCE_S = 1.0
"""The limit of Solr and the authority; a fault may take it once to connect and once to wait, and no longer."""

TOO_SLOW_S = 4 * PATIENCE_S
"""Longer than the time to connect and the limit together, which an answer has that comes in one piece."""

MODEL_PATIENCE_S = 2.0
"""The limit of the model, which is asked last."""

PATIENT = {
    "llm.limits.first_token_s": "60",
    "llm.limits.stall_s": "60",
    "llm.limits.total_s": "60",
}
"""Limits for what is no time-out, on a machine that has other work."""

ROOMY = {
    "solr.limits.wait_s": "120",
    **PATIENT,
}
"""The same for every part."""

CANARY = "canary-7f3a"
"""Part of every document, token and bad answer: no failure, log line or metric may repeat it."""

SECRET = "sesame-of-the-model"  # made up, to be looked for

# So long that what drips of it comes later than every limit.
TEXT = f"The pump needs oil every spring, says {CANARY}." + " It stands in the cellar, behind the boiler." * 40

DOCUMENTS = [
    {"id": "pump", "title": "Pumps", "content": TEXT, "language": "en"},
    {
        "id": "hidden",
        "title": "Hidden pumps",
        "content": f"The hidden pump needs water every spring, says {CANARY}.",
        "language": "en",
        "allow_token_document": ["secret-token"],
    },
]
QUESTION = "/search/select?action=rag&q=What+does+the+pump+need"


@dataclass
class Scene:
    """
    A service and the parts that it depends on, each behind a proxy that can cut connections and alter replies.

    *patient* is the same service with limits that no fault but silence reaches: where a limit is not what ends a
    request, a short one would only measure how busy the machine is, and take a cut for a time-out.
    """

    service: Running
    patient: Running
    solr: solr_process.Running
    folder: Path
    solr_wire: Wire
    solr_says: Lies
    authority_wire: Wire
    authority_says: Lies
    model_wire: Wire
    settings: dict[str, str]

    def ask(self, service: Running | None = None, *, is_streamed: bool = False) -> tuple[int, str]:
        """Return status and body of one answer; of *service* in place of the first one."""
        path = QUESTION + ("&stream=true" if is_streamed else "")
        reply = (service or self.service).get(path, X_Remote_User="ann")
        return reply.status_code, reply.text

    def ask_while_late(self, service: Running | None = None) -> tuple[int, str]:
        """
        Return what `ask` does, once no part is late any more.

        With everything in order only a busy machine makes a part late: the short limits are for faults.
        """

        def in_time() -> tuple[int, str] | None:
            reply = self.ask(service)
            return None if reply[0] == 504 else reply

        return until(in_time) or (0, "")

    def pause_solr(self) -> None:
        solr_process.signalled(self.solr.processes[0], how=signal.SIGSTOP)

    def stop_solr(self) -> None:
        solr_process.signalled(self.solr.processes[0])

    def mend(self) -> None:
        """Make everything good again; a Solr that was stopped is started."""
        self.solr_says.instead = self.authority_says.instead = None
        for wire in (self.solr_wire, self.authority_wire, self.model_wire):
            wire.mend()
        if not solr_process.signalled(self.solr.processes[0], how=signal.SIGCONT):
            self.solr = solr_process.started(self.folder, owner=os.getpid())


class Lies:
    """What a part answers: the truth, or something *instead*."""

    def __init__(self, truth: Callable[[Asked], Reply]) -> None:
        self._truth = truth
        self.instead: Callable[[Asked, Callable[[Asked], Reply]], Reply] | None = None

    def __call__(self, asked: Asked) -> Reply:
        return self._truth(asked) if self.instead is None else self.instead(asked, self._truth)


def status(code: int) -> Callable[[Asked, Callable[[Asked], Reply]], Reply]:
    return lambda asked, truth: Reply(f'{{"error":{{"msg":"{CANARY}"}}}}'.encode(), code)


def garbage(asked: Asked, truth: Callable[[Asked], Reply]) -> Reply:
    return Reply(f"<html>Sign in, {CANARY}</html>".encode(), headers=[("Content-Type", "text/html")])


def half(asked: Asked, truth: Callable[[Asked], Reply]) -> Reply:
    whole = truth(asked)
    return Reply(whole.body[: len(whole.body) // 2], length=len(whole.body))


def huge(asked: Asked, truth: Callable[[Asked], Reply]) -> Reply:
    """Answer a search with one document of 200 MB, and a search that asks for no texts without them."""
    if not asked.path.endswith("/select"):
        return truth(asked)
    found = b'{"response":{"numFound":1,"start":0,"docs":[{"id":"big","language":["en"]'
    if b"exactContent" not in asked.body:
        return Reply(found + b"}]}}")
    head = found + b',"exactContent":["A pump needs oil. '
    tail = b'The end."]}]}}'
    piece = b"Nothing of the kind stands here at all. " * 25_000

    def write(body: Any) -> None:
        body.write(head)
        for _ in range(200):
            body.write(piece)
        body.write(tail)

    return Reply(write=write, headers=[("Content-Length", str(len(head) + 200 * len(piece) + len(tail)))])


def half_said_whole(asked: Asked, truth: Callable[[Asked], Reply]) -> Reply:
    return Reply(truth(asked).body[:-20])


@contextmanager
def scene(folder: Path, settings: dict[str, str]) -> Iterator[Scene]:
    """Start it all; *settings* are added to the service's."""
    with (
        running(folder / "solr") as solr,
        serving(Lies(_forward(solr.url))) as solr_face,
        serving(Lies(_authority)) as authority_face,
        stub_llm(folder) as stub,
        wire_to(_port(solr_face)) as solr_wire,
        wire_to(_port(authority_face)) as authority_wire,
        wire_to(int(stub.url.rpartition(":")[2])) as model_wire,
    ):
        _fill(solr.url)
        given = {
            "solr.url": solr_wire.url + urlsplit(solr.url).path,
            "security.identity": "header",
            "security.tokens": "authority",
            "security.authority.url": authority_wire.url,
            "rag.api.endpoint": f"{model_wire.url}/v1/chat/completions",
            **SETTINGS,
            **settings,
        }
        (folder / "patient").mkdir()
        with service(folder, given) as found, service(folder / "patient", given | ROOMY) as patient:
            says = solr_face.answer, authority_face.answer
            assert isinstance(says[0], Lies)
            assert isinstance(says[1], Lies)
            yield Scene(
                found, patient, solr, folder / "solr", solr_wire, says[0], authority_wire, says[1], model_wire, given
            )


SETTINGS = {
    "solr.limits.wait_s": str(PATIENCE_S),
    "security.cache_s": "0",
    "rag.api.token": SECRET,
    "rag.model": "words-12-gap-2ms",
    "rag.reply.http_errors": "true",
    "llm.limits.retries": "0",
    "llm.limits.breaker_failures": "0",
    "llm.limits.first_token_s": str(MODEL_PATIENCE_S),
    "llm.limits.stall_s": str(MODEL_PATIENCE_S),
    "llm.limits.total_s": str(3 * MODEL_PATIENCE_S),
}


def _fill(url: str) -> None:
    writer = writer_for(settings_with(solr_url=url))
    writer.add([{**document, "exactContent": document["content"]} for document in DOCUMENTS])
    writer.commit()
    writer.close()


def _port(face: Loopback) -> int:
    return int(face.url.rpartition(":")[2])


def _forward(url: str) -> Callable[[Asked], Reply]:
    place = urlsplit(url).netloc

    def forward(asked: Asked) -> Reply:
        line = http.client.HTTPConnection(place, timeout=HANGS_S)
        try:
            target = asked.path + (f"?{urlencode(asked.query, doseq=True)}" if asked.query else "")
            kind = {name: value for name, value in asked.headers.items() if name.lower() == "content-type"}
            line.request(asked.method, target, body=asked.body or None, headers=kind)
            reply = line.getresponse()
            return Reply(reply.read(), reply.status, [("Content-Type", "application/json")])
        finally:
            line.close()

    return forward


def _authority(asked: Asked) -> Reply:
    return Reply(f"AUTHORIZED:stub\nTOKEN:token-of-{CANARY}\n".encode())
