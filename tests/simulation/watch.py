"""What must hold in every world, checked while it goes on; what did not is in `violations`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datafari_rag.core.answer.audit_record import broken, read_head
from tests.simulation.network import Call
from tests.simulation.readers import Visit
from tests.simulation.servers import SimulatedAuthority, SimulatedSolr
from tests.simulation.truth import Truth, canary

SLACK_S = 0.6
"""What is waited for after a complete answer, and the way through the network."""


class Watch:
    """The rules; each is told what happens and knows the truth."""

    def __init__(self, truth: Truth, now: Callable[[], float]) -> None:
        self.truth, self.now = truth, now
        self.violations: list[str] = []
        self.visits: dict[str, Visit] = {}
        self.open_streams: set[int] = set()
        self.model_calls: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self.first_words: dict[str, float] = {}
        self.failed_after_words: set[str] = set()
        self.in_a_row: dict[str, int] = defaultdict(int)
        self.failed_at: dict[str, float] = defaultdict(lambda: -1e9)
        self.probed_at: dict[str, float] = {}
        self.probed_until: dict[str, float] = {}
        self.has_new_rights = self.has_new_chain = self.has_jumped = False
        self.windows: dict[str, tuple[float, int]] = {}

    def found(self, rule: str, visit: Visit | None = None, more: object = "") -> None:
        """Note that *rule* does not hold."""
        who = "" if visit is None else f" {visit.id} {visit.user} {visit.speech.path}"
        self.violations.append(f"{self.now():.3f}{who}: {rule} {more}".rstrip())

    # What a reader sees

    def piece(self, visit: Visit, data: bytes) -> None:
        """Check the words of a reply as it grows."""
        if visit.is_stream and visit.number not in self.open_streams:
            self.open_streams.add(visit.number)
            most = max(self.visits[f"sim-{number}"].settings.server.limits.streams for number in self.open_streams)
            if len(self.open_streams) > most:
                self.found("more streams are open than server.limits.streams", visit)
        for word in sorted(visit.words() - visit.seen):
            visit.seen.add(word)
            if word.startswith("qx") and word != visit.word:
                self.found("a word of another question is in the answer", visit, word)
            if word.startswith("zq"):
                self._check_visible(visit, word)
            if visit.id not in self.first_words and visit.id in self.model_calls:
                self.first_words[visit.id] = self.now()

    def _check_visible(self, visit: Visit, word: str) -> None:
        document = next((one for one in self.truth.acls if canary(one) == word), None)
        if document is None:
            return
        tokens_since, rights_since = visit.began - visit.cache_s, visit.began
        if not self.truth.may_see(visit.user, document, tokens_since=tokens_since, rights_since=rights_since):
            self.found("a hidden document is in the answer", visit, document)

    def ended(self, visit: Visit) -> None:
        """Check a reply at its end."""
        self.open_streams.discard(visit.number)
        if visit.has_left:
            return
        settings, pieces = visit.settings, visit.pieces
        # The schema, three steps of a search, and another node for each; the rights of one call that is waited for.
        most_s = 10 * (settings.solr.limits.connect_s + settings.solr.limits.wait_s) + settings.llm.limits.total_s
        most_s += 2 * (settings.solr.limits.connect_s + settings.solr.limits.wait_s)
        if visit.ended - visit.began > most_s + pieces * visit.write_s:
            self.found("an answer takes longer than all limits together", visit)
        if visit.status in (0, 500):
            self.found(f"a defect: status {visit.status}", visit, visit.body[:200])
        if visit.is_stream and visit.speech.end is not None:
            end = visit.speech.end(visit.body)
            if end.problem:
                self.found("a stream does not end as it should", visit, end.problem)
            elif visit.id in self.failed_after_words and not end.is_failure:
                self.found("a failure after the first words is told as an end", visit)

    def check_rates(self) -> None:
        """Count the requests of each user as the limit does."""
        for visit in sorted(self.visits.values(), key=lambda visit: visit.began):
            self._check_rate(visit)

    def _check_rate(self, visit: Visit) -> None:
        """Count one; a window begins with its first request."""
        most = visit.settings.server.rate.user
        # A plain search is no question: it is counted in units of work.
        if visit.user is None or not most or self.has_jumped or visit.speech.name == "page":
            return
        ends, count = self.windows.get(visit.user, (-1.0, 0))
        if visit.began >= ends:
            ends, count = visit.began + 60, 0
        # One dialect has no statuses. A reader who left at once was perhaps never counted.
        if not visit.has_left and b"Too many requests" not in visit.body:
            count += 1
        self.windows[visit.user] = (ends, count)
        if count > most:
            self.found("more requests of a user than server.rate.user", visit)

    # What the servers see

    def asked_authority(self, authority: SimulatedAuthority) -> Callable[[str, float], None]:
        """Return what checks that a call is shared."""

        def check(user: str, now: float) -> None:
            ages = [now - began for name, began in authority.open.values() if name == user]
            cache_s = max((visit.cache_s for visit in self.visits.values()), default=0.0)
            if not self.has_new_rights and any(age < cache_s - SLACK_S for age in ages):
                self.found("the authority is called twice at the same time for", None, user)

        return check

    def check_searches(self, nodes: list[SimulatedSolr], authority: SimulatedAuthority) -> None:
        """Check that every search had tokens that its user was given."""
        for at, request_id, tokens in (one for node in nodes for one in node.searches):
            visit = self.visits.get(request_id)
            if visit is None or (visit.user is None and not tokens):
                continue
            since = visit.began - visit.cache_s
            sets = self.truth.token_sets(visit.user, since)
            given = {found for user, sent, found in authority.given if user == visit.user and since - 4 <= sent <= at}
            if tokens not in sets or (visit.user is not None and tokens not in given):
                self.found("a search without the user's own rights", visit, sorted(tokens))

    def asked_model(self, call: Call, prompt: str, name: str) -> None:
        """Check a call of a model: for whom, how often, and whether it may be made at all."""
        visit, now = self.visits.get(call.request_id), self.now()
        if visit is None:
            self.found("a model is called for nobody", None, call.request_id)
            return
        calls = self.model_calls[visit.id]
        calls.append((now, name))
        settings = visit.settings
        most = (settings.llm.limits.retries + 1) * (
            1 + len([one for one in settings.llm.fallback if "builtin" not in one])
        )
        if len(calls) > most:
            self.found("a model is called more often than llm.limits.retries allows", visit, len(calls))
        if visit.id in self.first_words:
            self.found("a model is called again after the first words", visit)
        if visit.word not in prompt:
            self.found("the prompt is of another question", visit)
        self._check_breaker(call, name, settings)

    def _check_breaker(self, call: Call, name: str, settings: Any) -> None:
        most = settings.llm.limits.breaker_failures
        if not most or self.in_a_row[name] < most:
            return
        reset_s = settings.llm.limits.breaker_reset_s
        since = max(self.failed_at[name], self.probed_at.get(name, 0.0))
        if not self.has_new_chain and self.now() < since + reset_s - 1e-6:
            self.found("a model is called while its breaker is open", None, name)
        self.probed_at[name], self.probed_until[call.request_id] = self.now(), self.now() + reset_s

    def told(self, call: Call, verdict: str, name: str) -> None:
        """Note how a call of a model ended, as its breaker should."""
        calls, visit = self.model_calls.get(call.request_id), self.visits.get(call.request_id)
        most_s = SLACK_S if visit is None else visit.settings.llm.limits.total_s + SLACK_S
        if calls and verdict == "passed" and self.now() > calls[0][0] + most_s:
            self.found("an answer is read after llm.limits.total_s", visit)
        if verdict == "failed":
            self.failed_after_words |= {call.request_id} & self.first_words.keys()
            self.in_a_row[name] += 1
            self.failed_at[name] = self.now()
        elif verdict == "passed" or (verdict == "answered" and self._is_open(name, visit)):
            self.in_a_row[name] = 0

    def open_breakers(self, visit: Visit) -> list[str]:
        """Return the models that are left alone now, but for a probe."""
        reset_s = visit.settings.llm.limits.breaker_reset_s
        return [
            name for name in self.in_a_row if self._is_open(name, visit) and self.now() < self.failed_at[name] + reset_s
        ]

    def was_probed(self, visit: Visit) -> bool:
        """Say whether *visit* may have been refused for a probe of another request: then nobody else may call."""
        return any(until >= visit.began for request_id, until in self.probed_until.items() if request_id != visit.id)

    def _is_open(self, name: str, visit: Visit | None) -> bool:
        return visit is not None and 0 < visit.settings.llm.limits.breaker_failures <= self.in_a_row[name]

    # What is left at the end

    def check_audit(self, folder: Path) -> None:
        """Check that the chains are whole, and that each answer has its line."""
        lines = []
        for chain in sorted(folder.glob("*.jsonl")):
            raw = chain.read_bytes().splitlines(keepends=True)
            problems = list(broken(raw, read_head(chain.with_suffix(".head").read_bytes())))
            if problems:
                self.found("the audit chain is broken", None, problems[0])
                return
            lines += [json.loads(line) for line in raw]
        by_id: dict[str, list[Any]] = defaultdict(list)
        for line in lines:
            by_id[line.get("id", "gap")].append(line)
        if "gap" in by_id:
            self.found("lines of the audit trail are lost")
        for visit in self.visits.values():
            self._check_lines(visit, by_id[visit.id])

    def _check_lines(self, visit: Visit, lines: list[Any]) -> None:
        is_answer = visit.speech.name not in ("page", "document")
        if len(lines) > 1 or (is_answer and visit.body and not lines and not visit.has_left):
            self.found(f"{len(lines)} lines in the audit trail", visit, visit.status)
        if lines and lines[0]["who"] != visit.user:
            self.found("the audit trail names another user", visit, lines[0]["who"])
        if lines and visit.status == 200 and lines[0]["outcome"] == "ok":
            listed = {canary(document["id"]) for document in lines[0]["documents"]}
            if not {word for word in visit.seen if word.startswith("zq")} <= listed:
                self.found("the audit trail leaves out a document", visit, sorted(visit.seen))
