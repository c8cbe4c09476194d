"""The model over HTTP, against the real stub and against servers that send exactly the bytes of a test."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel, ReadDeadline, decoded
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelBusy, ModelGarbled, ModelTimeout, ModelUnavailable, RefusedByModel
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.replies import REPLY_BYTES
from datafari_rag.core.settings.table import ModelLimits
from datafari_rag.ports import Ending, TextChunk
from tests.support.stub import Stub, raw_server, read_request, running_stub

PATIENT = ModelLimits()


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        yield running


def prompt(model: str, question: str = "What is nice?") -> Prompt:
    extract = Extract(1, "Cities", Document(id="1", text="Paris is nice."), (), "Paris is nice.")
    return Prompt(question=question, extracts=(extract,), instructions="Be brief.", nonce="k3j9x2m5q8w1", model=model)


def told(model: HttpModel, asked: Prompt, *, is_streamed: bool = True) -> tuple[list[str], Ending]:
    *pieces, ending = model.generate(asked, is_streamed=is_streamed)
    assert isinstance(ending, Ending)
    return [piece.text for piece in pieces if isinstance(piece, TextChunk)], ending


def sending(*parts: bytes, head: bytes = b"Content-Type: text/event-stream\r\n") -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        for part in parts:
            connection.sendall(part)

    return talk


def from_bytes(*parts: bytes, head: bytes = b"Content-Type: text/event-stream\r\n", **how: bool) -> tuple[str, Ending]:
    with raw_server(sending(*parts, head=head)) as url:
        texts, ending = told(HttpModel(Endpoint(url), limits=PATIENT), prompt("m"), **how)
    return "".join(texts), ending


@contextmanager
def trickling(first: bytes, drop: bytes) -> Iterator[str]:
    """A server that sends *first*, then *drop* again and again until the block ends."""
    is_over = threading.Event()

    def talk(connection: socket.socket) -> None:
        connection.sendall(first)
        while not is_over.wait(0.02):
            connection.sendall(drop)

    with raw_server(talk) as url:
        try:
            yield url
        finally:
            is_over.set()


def event(text: str, finish_reason: str | None = None) -> bytes:
    chunk = {"model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


class TestRequest:
    def test_the_key_is_sent_as_bearer(self, stub: Stub) -> None:
        told(HttpModel(Endpoint(stub.url, "sk-1"), limits=PATIENT), prompt("echo-key"))
        (asked,) = stub.requests("echo-key")
        assert asked["headers"]["authorization"] == "Bearer sk-1"

    def test_an_endpoints_own_model_name_replaces_the_prompts(self, stub: Stub) -> None:
        _, ending = told(HttpModel(Endpoint(stub.url, model="echo-own"), limits=PATIENT), prompt("status-500"))
        assert (ending.failure, ending.facts.name) == (None, "echo-own")

    def test_half_a_character_in_the_question_does_not_stop_it(self, stub: Stub) -> None:
        texts, ending = told(
            HttpModel(Endpoint(stub.url), limits=PATIENT), prompt("echo", "a\ud83d b"), is_streamed=False
        )
        assert (texts, ending.failure) == (["a\ufffd b"], None)

    def test_a_redirect_is_not_followed_with_the_key(self, stub: Stub) -> None:
        head = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: " + stub.url.encode() + b"\r\nContent-Length: 0\r\n\r\n"
        with raw_server(lambda connection: connection.sendall(head)) as url:
            _, ending = told(HttpModel(Endpoint(url, "sk-1"), limits=PATIENT), prompt("echo-redirected"))
        assert isinstance(ending.failure, ModelGarbled)
        assert stub.requests("echo-redirected") == []


def connections_for(answers: list[bytes], first_token_s: float = PATIENT.first_token_s) -> int:
    """Return how many connections a model opens whose server gives *answers*, one after another, and closes none."""
    left, count = list(answers), [0]

    def talk(connection: socket.socket) -> None:
        count[0] += 1
        connection.settimeout(5)
        connection.sendall(left.pop())
        while read_request(connection):
            connection.sendall(left.pop())

    with raw_server(talk) as url:
        model = HttpModel(Endpoint(url), limits=PATIENT.replaced(first_token_s=first_token_s, stall_s=0.3))
        for _ in answers:
            told(model, prompt("m"))
        model.close()
    return count[0]


class TestReading:
    def test_the_first_piece_names_the_model_before_the_end(self, stub: Stub) -> None:
        said = HttpModel(Endpoint(stub.url), limits=PATIENT).generate(prompt("words-3"), is_streamed=True)
        first = next(said)
        said.close()
        assert isinstance(first, TextChunk)
        assert first.facts is not None
        assert (first.facts.name, first.facts.id) == ("words-3", "chatcmpl-stub")

    def test_pieces_come_as_they_are_sent(self, stub: Stub) -> None:
        texts, _ = told(HttpModel(Endpoint(stub.url), limits=PATIENT), prompt("words-3-gap-20ms"))
        assert texts == ["word1 ", "word2 ", "word3"]

    @pytest.mark.parametrize("head", [b"Content-Type: text/event-stream\r\n", b"Connection: close\r\n", b""])
    def test_a_body_without_chunks_or_length_is_not_held_back_to_its_end(self, head: bytes) -> None:
        is_read = threading.Event()

        def talk(connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + event("first"))
            assert is_read.wait(5)
            connection.sendall(event("", "stop"))

        with raw_server(talk) as url:
            said = HttpModel(Endpoint(url), limits=PATIENT).generate(prompt("m"), is_streamed=True)
            first = next(said)
            is_read.set()
            assert isinstance(first, TextChunk)
            assert first.text == "first"
            (ending,) = said
            assert isinstance(ending, Ending)
            assert ending.failure is None

    def test_every_cut_of_the_bytes_tells_the_same(self) -> None:
        wire = b": ping\r\n\r\n" + event("h\u00e9 \U0001f642").replace(b"\n", b"\r\n") + event("!", "stop")
        for at in range(0, len(wire), 7):
            text, ending = from_bytes(wire[:at], wire[at:])
            assert (text, ending.failure, ending.finish_reason) == ("hé 🙂!", None, "stop")

    def test_white_space_before_the_first_word_waits_for_it(self) -> None:
        with raw_server(sending(event("\n"), event(" "), event("word"), event(" "), event("", "stop"))) as url:
            texts, ending = told(HttpModel(Endpoint(url), limits=PATIENT), prompt("m"))
        assert (texts, ending.failure) == (["\n word", " "], None)

    def test_numbers_that_are_none_in_json_are_read(self) -> None:
        text, _ = from_bytes(b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop","logprobs":NaN}]}\n\n')
        assert text == "x"

    def test_json_in_answer_to_a_wish_for_a_stream_is_read_as_a_whole(self) -> None:
        body = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'
        text, ending = from_bytes(body, head=b"Content-Type: application/json\r\n")
        assert (text, ending.failure) == ("x", None)

    def test_an_answer_is_complete_with_its_finish_reason_even_if_the_server_keeps_the_line_open(self) -> None:
        is_told = threading.Event()

        def talk(connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + event("x", "stop"))
            assert is_told.wait(10)

        with raw_server(talk) as url:
            _, ending = told(HttpModel(Endpoint(url), limits=ModelLimits(stall_s=30)), prompt("m"))
            is_told.set()
        assert ending.failure is None

    def test_an_event_without_end_is_garbled_before_it_fills_the_memory(self) -> None:
        text, ending = from_bytes(event("x"), *[b"data: " + b"y" * 1_000_000 + b"\n"] * 9)
        assert (text, type(ending.failure)) == ("x", ModelGarbled)

    def test_a_stream_without_end_is_garbled_and_its_connection_closed(self) -> None:
        sent, is_closed = [0], threading.Event()

        def talk(connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            try:
                while sent[0] < 60 * REPLY_BYTES:
                    connection.sendall(event("word " * 1000))
                    sent[0] += 5000
            except OSError:
                is_closed.set()

        with raw_server(talk) as url:
            texts, ending = told(HttpModel(Endpoint(url), limits=ModelLimits()), replace(prompt("m"), max_tokens=1))
            assert is_closed.wait(10)
        assert isinstance(ending.failure, ModelGarbled)
        assert 0 < len("".join(texts)) < 2 * REPLY_BYTES

    def test_a_relayed_stream_without_end_is_garbled_too(self) -> None:
        body = {"messages": [], "max_tokens": 1, "stream": True}
        with raw_server(sending(*[event("word " * 1000)] * 300)) as url:
            *chunks, ending = HttpModel(Endpoint(url), limits=PATIENT).relay(body, is_streamed=True)
        assert isinstance(ending, Ending)
        assert isinstance(ending.failure, ModelGarbled)
        assert 0 < len(chunks) < 250

    def test_the_datafari_dialect_is_asked_whole_even_for_a_stream(self, stub: Stub) -> None:
        model = HttpModel(Endpoint(f"{stub.base}/invoke?model=cite"), template="datafari", limits=PATIENT)
        texts, ending = told(model, prompt("ignored"))
        assert (texts, ending.failure) == (["Paris is nice. [1]"], None)


class TestConnections:
    @pytest.mark.parametrize("body", [b"Content-Length: 99\r\n\r\n{", b"Content-Length: 3\r\n\r\nno!"])
    def test_a_refusal_whose_body_cannot_be_read_keeps_its_number(self, body: bytes) -> None:
        with raw_server(lambda connection: connection.sendall(b"HTTP/1.1 429 Busy\r\n" + body)) as url:
            _, ending = told(HttpModel(Endpoint(url), limits=PATIENT), prompt("m"))
        assert isinstance(ending.failure, ModelBusy)
        assert ending.failure.status == 429

    @pytest.mark.parametrize("ends", [b"0\r\n\r\n", b"0\r\nX: 1\r\n\r\n"], ids=["immediately", "after a trailer"])
    def test_a_stream_that_was_read_to_its_end_gives_its_connection_back(self, ends: bytes) -> None:
        body = event("x", "stop") + b"data: [DONE]\n\n"
        answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%s" % (len(body), body, ends)
        assert connections_for([answer] * 4) == 1

    def test_closing_the_answer_closes_the_connection_at_once(self, stub: Stub) -> None:
        said = HttpModel(Endpoint(stub.url), limits=PATIENT).generate(prompt("words-9-gap-50ms-left"), is_streamed=True)
        next(said)
        said.close()
        assert stub.states("words-9-gap-50ms-left", wanted="left") == ["left"]


class TestProxy:
    BODY = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'

    def through(self, url: str, answer: bytes) -> tuple[bytes, Ending]:
        """Ask *url* through a proxy that says *answer*; return the head of what it was sent, and how it ended."""
        with socket.create_server(("127.0.0.1", 0)) as proxy:
            heads: list[bytes] = []

            def serve() -> None:
                connection, _ = proxy.accept()
                with connection:
                    heads.append(connection.recv(65536))
                    connection.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            address = f"http://us%40er:p%3Aw@127.0.0.1:{proxy.getsockname()[1]}"
            model = HttpModel(Endpoint(url, "sk-1", proxy=address), limits=PATIENT)
            _, ending = told(model, prompt("m"), is_streamed=False)
            thread.join(5)
            model.close()
        return heads[0], ending

    def test_a_plain_request_names_the_whole_address(self) -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(self.BODY), self.BODY)
        head, ending = self.through("http://model.invalid:8000/v1/chat?x=1", answer)
        assert ending.failure is None
        lines = head.split(b"\r\n")
        assert lines[0] == b"POST http://model.invalid:8000/v1/chat?x=1 HTTP/1.1"
        assert b"Host: model.invalid:8000" in lines
        assert b"Proxy-Authorization: Basic dXNAZXI6cDp3" in lines
        assert b"Authorization: Bearer sk-1" in lines

    def test_with_tls_the_proxy_sees_neither_the_key_nor_the_path(self) -> None:
        head, ending = self.through("https://model.invalid/v1/chat", b"HTTP/1.1 403 Forbidden\r\n\r\n")
        assert isinstance(ending.failure, ModelUnavailable)
        assert head.startswith(b"CONNECT model.invalid:443 HTTP/1.")
        assert b"Proxy-Authorization: Basic dXNAZXI6cDp3" in head
        assert b"sk-1" not in head
        assert b"/v1/chat" not in head


class TestLimits:
    """With a clock of the test's own: nothing here waits."""

    def patience(self, *, is_streamed: bool, until: float | None = None) -> tuple[ReadDeadline, list[float]]:
        now = [1000.0]
        limits = ModelLimits(first_token_s=60, stall_s=30, total_s=300)
        return ReadDeadline(limits, lambda: now[0], is_streamed=is_streamed, until=until), now

    def test_a_stream_waits_for_its_first_text_then_for_each_next_one(self) -> None:
        patience, now = self.patience(is_streamed=True)
        assert patience.left_s() == 60
        now[0] += 59
        list(patience.lent("text"))
        assert patience.left_s() == 30
        now[0] += 30
        with pytest.raises(ModelTimeout) as raised:
            patience.left_s()
        assert not raised.value.is_blameless

    def test_the_next_silence_begins_when_a_slow_reader_comes_back(self) -> None:
        patience, now = self.patience(is_streamed=True)
        assert patience.left_s() == 60
        lent = patience.lent("text")
        assert next(lent) == "text"
        now[0] += 100
        assert list(lent) == []
        assert patience.left_s() == 30

    def test_a_total_that_a_slow_reader_used_up_is_not_the_models_fault(self) -> None:
        patience, now = self.patience(is_streamed=True)
        assert patience.left_s() == 60
        for _ in patience.lent("text"):
            now[0] += 301
        with pytest.raises(ModelTimeout) as raised:
            patience.left_s()
        assert raised.value.is_blameless

    def test_time_that_was_used_up_before_is_not_the_models_fault(self) -> None:
        with pytest.raises(ModelTimeout) as raised:
            self.patience(is_streamed=False, until=1000.0)[0].left_s()
        assert raised.value.is_blameless

    def test_no_stream_outlives_the_total(self) -> None:
        patience, now = self.patience(is_streamed=True)
        for _ in range(29):
            now[0] += 10
            list(patience.lent("text"))
        assert patience.left_s() == 10
        now[0] += 10
        list(patience.lent("text"))
        with pytest.raises(ModelTimeout):
            patience.left_s()

    def test_after_the_end_little_more_is_waited_for(self) -> None:
        patience, _ = self.patience(is_streamed=True)
        patience.end(0.5)
        assert patience.left_s() == 0.5

    def test_comments_do_not_count_as_tokens(self) -> None:
        with trickling(b"HTTP/1.1 200 OK\r\n\r\n" + event("x"), b": still thinking\n\n") as url:
            texts, ending = told(HttpModel(Endpoint(url), limits=ModelLimits(stall_s=0.2)), prompt("m"))
        assert texts == ["x"]
        assert isinstance(ending.failure, ModelTimeout)


class TestRelay:
    def relayed(self, stub: Stub, body: dict[str, object], *, is_streamed: bool) -> tuple[list[object], Ending]:
        model = HttpModel(Endpoint(stub.url, "sk-1"), limits=PATIENT)
        *chunks, ending = model.relay(body, is_streamed=is_streamed)
        assert isinstance(ending, Ending)
        return chunks, ending

    def test_the_body_arrives_unchanged_with_the_services_own_key(self, stub: Stub) -> None:
        body = {"model": "echo-relay", "messages": [{"role": "user", "content": "hé"}], "tools": [{"x": 1}], "n": 2}
        self.relayed(stub, body, is_streamed=False)
        (asked,) = stub.requests("echo-relay")
        assert (asked["body"], asked["headers"]["authorization"]) == (body, "Bearer sk-1")

    def test_a_whole_reply_comes_back_as_it_is(self, stub: Stub) -> None:
        body = {"model": "tools", "messages": [{"role": "user", "content": "x"}]}
        (reply,), ending = self.relayed(stub, body, is_streamed=False)
        assert ending.failure is None
        assert isinstance(reply, dict)
        assert reply["choices"][0]["message"]["tool_calls"]
        assert reply["object"] == "chat.completion"

    def test_every_chunk_of_a_stream_comes_back_as_it_is(self, stub: Stub) -> None:
        messages = [{"role": "user", "content": "a b"}]
        body = {"model": "echo-chunks", "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
        chunks, ending = self.relayed(stub, body, is_streamed=True)
        assert ending.failure is None
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks if isinstance(chunk, dict) and chunk["choices"]]
        assert deltas == [{"role": "assistant", "content": ""}, {"content": "a "}, {"content": "b"}, {}]
        assert isinstance(chunks[-1], dict)
        assert chunks[-1]["usage"]["completion_tokens"] == 2

    def test_an_endpoints_own_model_name_replaces_the_bodys(self, stub: Stub) -> None:
        body = {"model": "status-500", "messages": [{"role": "user", "content": "x"}]}
        _, ending = HttpModel(Endpoint(stub.url, model="echo-relayed")).relay(body, is_streamed=False)
        assert isinstance(ending, Ending)
        assert (ending.failure, ending.facts.name) == (None, "echo-relayed")
        assert body["model"] == "status-500"

    def test_several_answers_at_once_are_relayed_until_all_are_finished(self) -> None:
        def choice(index: int, text: str, finish_reason: str | None = None) -> bytes:
            told = {"index": index, "delta": {"content": text}, "finish_reason": finish_reason}
            return b"data: " + json.dumps({"choices": [told]}).encode() + b"\n\n"

        is_first_over = threading.Event()

        def talk(connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + choice(0, "a", "stop"))
            is_first_over.wait(0.7)  # longer than what is waited for after an answer's end
            connection.sendall(choice(1, "b") + choice(1, "c", "stop") + b"data: [DONE]\n\n")

        with raw_server(talk) as url:
            *chunks, ending = HttpModel(Endpoint(url)).relay({"n": 2, "stream": True}, is_streamed=True)
        assert len(chunks) == 3
        assert isinstance(ending, Ending)
        assert ending.failure is None

    def test_one_answer_of_two_is_a_stream_that_broke_off(self) -> None:
        with raw_server(sending(event("x", "stop"))) as url:
            *_, ending = HttpModel(Endpoint(url)).relay({"n": 2, "stream": True}, is_streamed=True)
        assert isinstance(ending, Ending)
        assert isinstance(ending.failure, ModelUnavailable)

    @pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
    def test_how_a_relayed_answer_ended_is_told(self, stub: Stub, is_streamed: bool) -> None:
        messages = [{"role": "user", "content": "a b"}]
        options = {"stream": True, "stream_options": {"include_usage": True}} if is_streamed else {}
        body = {"model": "echo-length", "messages": messages, **options}
        assert self.relayed(stub, body, is_streamed=is_streamed)[1].finish_reason == "length"

    @pytest.mark.parametrize("status", [400, 404, 422])
    def test_what_the_model_says_of_the_body_is_told_to_its_sender(self, stub: Stub, status: int) -> None:
        chunks, ending = self.relayed(stub, {"model": f"status-{status}", "messages": []}, is_streamed=False)
        assert chunks == []
        assert isinstance(ending.failure, RefusedByModel)
        assert (ending.failure.code, ending.failure.reason) == (400, f"the stub was asked for status {status}")


@pytest.mark.parametrize(
    "data", [b"", b"[1]", b"nul", b"\xff", b'{"a":' * 100_000], ids=["", "list", "no", "bytes", "deep"]
)
def test_what_is_no_json_object_is_garbled(data: bytes) -> None:
    with pytest.raises(ModelGarbled):
        decoded(data)
