"""Solr, the authority service and the models: each as much of one as its callers can tell, with its ways to fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

from datafari_rag.core.solr.parameters import SEPARATOR
from tests.simulation.network import Call, Network, Script
from tests.simulation.truth import DEAD, Truth, canary

CANARY = re.compile(r"zq[a-z0-9]+?k|qx[0-9]+k")
"""The words of documents and of questions that stand in one place only."""

BROKEN: Mapping[str, Callable[[Script], Script]] = {
    "refused": lambda good: Script(fault="refused"),
    "unconnected": lambda good: Script(fault="unconnected"),
    "hang": lambda good: Script(fault="hang"),
    "reset": lambda good: Script(fault="reset", before_s=0.1),
    "500": lambda good: Script(((0.0, b"{}"),), 500),
    "503": lambda good: Script(((0.0, b"{}"),), 503),
    "garbage": lambda good: Script(((0.0, b"<html>no JSON</html>"),)),
    "cut": lambda good: replace(good, pieces=good.pieces[: len(good.pieces) // 2], ending="cut"),
    "silent": lambda good: replace(good, pieces=good.pieces[: len(good.pieces) // 2], ending="silent"),
    "slow": lambda good: replace(good, before_s=good.before_s + 2.5),
    "too slow": lambda good: replace(good, before_s=good.before_s + 60.0),
}
"""What a fault makes of a good reply, by name."""


@dataclass
class Weather:
    """Whether a server is broken now: *fault* happens to a call with *chance*."""

    fault: str = ""
    chance: float = 0.0


@dataclass
class SimulatedSolr:
    """One node; all nodes have the same documents."""

    network: Network
    truth: Truth
    weather: Weather = field(default_factory=Weather)
    searches: list[tuple[float, str, frozenset[str]]] = field(default_factory=list)
    """When, for which request, with which tokens."""

    faults = ("refused", "unconnected", "hang", "reset", "500", "503", "garbage", "cut", "silent", "slow", "too slow")

    def sent(self, call: Call) -> None:
        """Note nothing."""

    def called(self, call: Call) -> Script:
        """Answer a search, or say that the schema may not be read."""
        if call.path.endswith("/schema"):
            return _with_weather(self, Script(((0.0, b"{}"),), 403), BROKEN)
        params = parse_qs(f"{call.query}&{call.body.decode()}", keep_blank_values=True)
        tokens = frozenset(params["tokens"][0].split(SEPARATOR)) if "tokens" in params else frozenset[str]()
        self.searches.append((self.network.scheduler.now, call.request_id, tokens))
        body = json.dumps(_solr_reply(params, self.truth)).encode()
        pieces = ((0.0, body[:100]), (0.001, body[100:]))
        good = Script(pieces, before_s=self.network.random.choice((0.002, 0.01, 0.05, 0.4)))
        return _with_weather(self, good, BROKEN)

    def ended(self, call: Call, outcome: str, pieces_left: int) -> None:
        """Note nothing."""


def _solr_reply(params: Mapping[str, list[str]], truth: Truth) -> dict[str, Any]:
    wanted = params.get("document")
    found = [
        _row(identifier)
        for identifier in sorted(truth.acls)
        if (acl := truth.acl_now(identifier)) is not None
        and (wanted is None or identifier in wanted)
        and all(_matches(query, params, acl) for query in params.get("fq", ()))
    ]
    rows = int(params.get("rows", ["10"])[0])
    response = {"numFound": len(found), "start": 0, "numFoundExact": True, "docs": found[:rows]}
    return {"responseHeader": {"status": 0, "QTime": 2}, "response": response}


def _row(identifier: str) -> dict[str, Any]:
    word = canary(identifier)
    text = f"The budget report of the project {word} says that the budget is 1300 euros. Its author is known."
    named = {"id": identifier, "title": f"Report {identifier}", "url": f"file:///{identifier}.txt", "language": "en"}
    return {**named, "exactContent": [text], "_version_": 1, "score": 2.0}


def _matches(query: str, params: Mapping[str, list[str]], acl: Mapping[str, tuple[str, ...]]) -> bool:
    """Say whether a filter query lets through what has *acl*; knows the parsers that the service uses for rights."""
    if query.startswith("+"):
        return all(value in acl[name] for name, _, value in (one[1:].partition(":") for one in query.split(" ")))
    if query == "*:*" or query.endswith(":[* TO *]"):  # no filter at all, and that a text is there: all have one
        return True
    kind, _, rest = query[2:-1].partition(" ")
    given = [(name, _value(text, params)) for name, text in re.findall(r'(\w+)=("[^"]*"|\S+)', rest)]
    if kind == "bool":
        should = [_matches(inner, params, acl) for name, inner in given if name == "should"]
        must_not = any(_matches(inner, params, acl) for name, inner in given if name == "must_not")
        return any(should) and not must_not
    known = dict(given)
    values = known["v"].split(SEPARATOR) if kind == "terms" else [known["v"]]
    return bool(set(values) & set(acl[known["f"]]))


def _value(text: str, params: Mapping[str, list[str]]) -> str:
    return params[text[1:]][0] if text.startswith("$") else text


@dataclass
class SimulatedAuthority:
    """ManifoldCF's authority service; *given* is what it answered: user, when, tokens."""

    network: Network
    truth: Truth
    weather: Weather = field(default_factory=Weather)
    given: list[tuple[str, float, frozenset[str]]] = field(default_factory=list)
    open: dict[int, tuple[str, float]] = field(default_factory=dict)
    note_call: Callable[[str, float], None] = lambda user, now: None

    faults = (
        "refused", "unconnected", "hang", "reset", "500", "garbage", "cut", "silent", "slow", "too slow", "unreachable",
        "dead",
    )  # fmt: skip

    def sent(self, call: Call) -> None:
        """Note that a user's tokens are asked for."""
        user, now = parse_qs(call.query)["username"][0], self.network.scheduler.now
        self.note_call(user, now)
        self.open[call.number] = (user, now)

    def called(self, call: Call) -> Script:
        """Answer with the tokens as they are now."""
        user, now = parse_qs(call.query)["username"][0], self.network.scheduler.now
        tokens = self.truth.tokens_now(user)
        self.given += [(user, now, tokens), (user, now, frozenset({DEAD}))]
        body = "AUTHORIZED:ad\n" + "".join(f"TOKEN:{token}\n" for token in sorted(tokens))
        half = len(body) // 2
        pieces = ((0.0, body[:half].encode()), (0.01, body[half:].encode()))
        good = Script(pieces, before_s=self.network.random.choice((0.001, 0.02, 0.3, 1.0, 1.0)))
        return _with_weather(self, good, {**BROKEN, "unreachable": _unreachable, "dead": _dead})

    def ended(self, call: Call, outcome: str, pieces_left: int) -> None:
        """Note that the call is over."""
        self.open.pop(call.number, None)


def _unreachable(good: Script) -> Script:
    """Leave out what a directory that is down would have given, deny tokens included."""
    return replace(good, pieces=((0.0, b"UNREACHABLEAUTHORITY:ad\n"),))


def _dead(good: Script) -> Script:
    """Give the token that every document of the directory denies, in place of the user's."""
    return replace(good, pieces=((0.0, f"UNREACHABLEAUTHORITY:ad\nTOKEN:{DEAD}\n".encode()),))


@dataclass
class SimulatedModel:
    """A model's server, which repeats the rare words of its prompt; *note* is told each call, *told* each outcome."""

    network: Network
    name: str
    weather: Weather = field(default_factory=Weather)
    note: Callable[[Call, str, str], None] = lambda call, prompt, name: None
    told: Callable[[Call, str, str], None] = lambda call, verdict, name: None
    scripts: dict[int, Script] = field(default_factory=dict)

    faults = (
        "refused", "refused", "unconnected", "hang", "reset", "500", "503", "503", "garbage", "cut", "cut", "silent",
        "slow", "too slow", "429", "busy", "400", "no end", "filtered", "empty", "drip",
    )  # fmt: skip

    def sent(self, call: Call) -> None:
        """Tell of it."""
        self.note(call, json.dumps(json.loads(call.body)["messages"]), self.name)

    def called(self, call: Call) -> Script:
        """Answer with the rare words of the prompt, some pieces of each."""
        body = json.loads(call.body)
        prompt = json.dumps(body["messages"])
        words = list(dict.fromkeys(CANARY.findall(prompt)))
        text = "The budget of " + " and ".join(words) + " is 1300 euros [1]."
        good = _stream(text, self.network) if body.get("stream") else _whole(text)
        script = _with_weather(self, good, {**BROKEN, **MODEL_BROKEN})
        self.scripts[call.number] = script
        return script

    def ended(self, call: Call, outcome: str, pieces_left: int) -> None:
        """Tell how it ended."""
        script = self.scripts.pop(call.number, None)
        if script is None or outcome == "left":
            self.told(call, "left", self.name)
        elif outcome == "failed" and pieces_left == 1 and b"[DONE]" in script.pieces[-1][1]:
            # It was complete, and only the end of the body did not come in time.
            self.told(call, "passed", self.name)
        elif outcome == "failed" or script.kind in ("500", "503", "no end"):
            self.told(call, "failed", self.name)
        else:
            self.told(
                call,
                "answered" if script.kind in ("429", "busy", "400", "garbage", "filtered") else "passed",
                self.name,
            )


def _stream(text: str, network: Network) -> Script:
    size = network.random.randint(7, 25)
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    waits = network.random.choice(((0.0,), (0.01, 0.3), (0.05, 2.0)))
    slow = [(network.random.choice(waits), _event({"content": part}, None)) for part in parts]
    # A good answer ends well within the limit of all.
    scale = min(1.0, 12.0 / max(0.1, sum(wait_s for wait_s, _ in slow)))
    pieces = [(wait_s * scale, piece) for wait_s, piece in slow]
    ends = ((0.0, _event({}, "stop")), (0.01, b"data: [DONE]\n\n"))
    return Script((*pieces, *ends), headers={"Content-Type": "text/event-stream"}, before_s=0.3)


def _event(delta: Mapping[str, str], finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"model": "m", "choices": [choice]}).encode() + b"\n\n"


def _whole(text: str) -> Script:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = json.dumps({"model": "m", "choices": [choice]}).encode()
    return Script(((0.0, body[:30]), (0.01, body[30:])), headers={"Content-Type": "application/json"}, before_s=0.8)


def _without_end(good: Script) -> Script:
    return replace(good, pieces=good.pieces[:-2]) if len(good.pieces) > 4 else BROKEN["cut"](good)


def _without_text(good: Script, finish_reason: str) -> Script:
    if "json" not in good.headers["Content-Type"]:
        return replace(good, pieces=((0.0, _event({}, finish_reason)), good.pieces[-1]))
    choice = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": finish_reason}
    return replace(good, pieces=((0.0, json.dumps({"model": "m", "choices": [choice]}).encode()),))


def _dripping(good: Script) -> Script:
    return replace(good, pieces=tuple((wait_s + 1.5, piece) for wait_s, piece in good.pieces))


MODEL_BROKEN: Mapping[str, Callable[[Script], Script]] = {
    "429": lambda good: Script(((0.0, b"{}"),), 429, {"Retry-After": "1"}),
    "busy": lambda good: Script(((0.0, b"{}"),), 429, {"Retry-After": "90"}),
    "400": lambda good: Script(((0.0, b"{}"),), 400),
    "no end": _without_end,
    "filtered": lambda good: _without_text(good, "content_filter"),
    "empty": lambda good: _without_text(good, "stop"),
    "drip": _dripping,
}


def _with_weather(server: Any, good: Script, broken: Mapping[str, Callable[[Script], Script]]) -> Script:
    weather: Weather = server.weather
    if weather.fault and server.network.random.random() < weather.chance:
        return replace(broken[weather.fault](good), kind=weather.fault)
    return good
