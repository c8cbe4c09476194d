"""
The image, built from the shipped Dockerfile without a daemon (buildah, as root) and started.

Its base is a Debian that is unpacked from Debian's own packages, with Debian's Python: no registry of images is needed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from PIL import Image, ImageDraw, ImageFont

from tests.end_to_end.processes import free_port
from tests.required import missing, program
from tests.support.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
BASE = "FROM scratch\nADD root.tar /\nRUN ln -s python3 /usr/bin/python\n"
PACKAGES = "python3,python3-venv,ca-certificates,passwd"
TRUSTED = ("/etc/ssl/certs", "/etc/pip.conf")
"""How this machine reaches its package registries: the image's build has to reach the same ones."""


class Builder:
    """buildah with images of its own, which go with the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        places = ["--root", str(folder / "images"), "--runroot", str(folder / "run")]
        self.buildah = [program("buildah", "apt-get install buildah"), *places]

    def __call__(self, *arguments: str | Path) -> str:
        command = [*self.buildah, *(str(argument) for argument in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=self.folder)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout

    def build(self, name: str, file: Path, context: Path, *options: str) -> None:
        variables = [f"--env={key}={value}" for key, value in os.environ.items() if key.startswith("PIP_")]
        shared = [f"--volume={path}:{path}:ro" for path in TRUSTED if Path(path).exists()]
        self(
            "bud", "--isolation=chroot", "--pull-never", *variables, *shared, *options, "-f", file, "-t", name, context
        )

    def command_in(self, container: str, *command: str, share: Path) -> list[str]:
        shared = f"--volume={share}:/etc/datafari-rag:ro"
        return [*self.buildah, "run", "--isolation=chroot", shared, container, "--", *command]


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """Build the image `datafari-rag`."""
    folder = tmp_path_factory.mktemp("image")
    build = Builder(folder)
    unpack = program("mmdebstrap", "apt-get install mmdebstrap")
    debian = [unpack, "--quiet", "--variant=minbase", f"--include={PACKAGES}", "trixie", str(folder / "root.tar")]
    if subprocess.run(debian, capture_output=True, timeout=900).returncode:
        missing("Debian's mirror", "buildah needs it to unpack the base of the image, and root")
    (folder / "Base").write_text(BASE)
    build("bud", "--isolation=chroot", "-f", folder / "Base", "-t", "base", folder)
    build.build("datafari-rag", ROOT / "deploy" / "Dockerfile", ROOT, "--build-arg=BASE=localhost/base")
    yield build
    build("rm", "--all")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """Return what is mounted as /etc/datafari-rag, which the user of the image may read."""
    tmp_path.chmod(0o755)
    settings = "solr.url=embedded:/var/lib/datafari-rag/index\nrag.api.endpoint=builtin:extractive\n"
    (tmp_path / "rag.properties").write_text(settings)
    (tmp_path / "rag.properties").chmod(0o644)
    return tmp_path


def ran(builder: Builder, container: str, *command: str, share: Path) -> str:
    done = subprocess.run(
        builder.command_in(container, *command, share=share), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_image_indexes_a_folder_and_serves_it_under_its_own_user(builder: Builder, conf: Path) -> None:
    (conf / "ferry.md").write_text("# Ferry\n\nThe ferry to the island leaves at nine.\n")
    container = builder("from", "--pull-never", "localhost/datafari-rag").strip()
    image = json.loads(builder("inspect", container))["OCIv1"]["config"]
    port = str(free_port())
    started = [*image["Entrypoint"], *image["Cmd"][:-4], "--host", "127.0.0.1", "--port", port]

    assert image["Cmd"][-4:] == ["--host", "0.0.0.0", "--port", "8080"]
    assert ran(builder, container, "id", "-u", share=conf).strip() == image["User"].partition(":")[0] == "10001"
    indexed = ran(
        builder, container, "datafari-rag", "index", "/etc/datafari-rag/ferry.md", *image["Cmd"][1:3], share=conf
    )
    assert "1 document written" in indexed
    with subprocess.Popen(builder.command_in(container, *started, share=conf)) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            until(lambda: process.poll() is not None or _is_ready(f"{url}/health/ready"))
            reply = requests.post(f"{url}/chat", json={"messages": [{"role": "user", "content": "ferry?"}]}, timeout=30)
        finally:
            process.terminate()
            process.wait(60)
    assert "leaves at nine" in reply.text


def _is_ready(url: str) -> bool:
    try:
        return requests.get(url, timeout=10).status_code == 200
    except requests.ConnectionError:
        return False


def test_the_page_on_vectors_and_ocr_in_the_image_makes_one_that_reads_pictures(builder: Builder, conf: Path) -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```dockerfile\n(.*?)```", page, re.S)
    (builder.folder / "More").write_text(block.replace("FROM ", "FROM localhost/", 1))
    builder.build("more", builder.folder / "More", builder.folder)
    picture = Image.new("L", (800, 100), 255)
    ImageDraw.Draw(picture).text(
        (20, 30), "The gateway of Asia is in Singapore.", fill=0, font=ImageFont.load_default(32)
    )
    picture.save(conf / "scan.png")
    container = builder("from", "--pull-never", "localhost/more").strip()
    settings = ("--conf", "/etc/datafari-rag/rag.properties")

    ran(builder, container, "python", "-c", "import onnxruntime, tokenizers, sentencepiece", share=conf)
    ran(builder, container, "datafari-rag", "index", "/etc/datafari-rag/scan.png", *settings, share=conf)
    asked = ran(builder, container, "datafari-rag", "ask", "Where is the gateway of Asia?", *settings, share=conf)
    assert "The gateway of Asia is in Singapore." in asked
