"""
Open WebUI itself in front of the service, with a real browser: `.ci/measure open-webui`. Too large for `make test`.

Two people ask the same question in Open WebUI; each gets the answer that they may have, with sources that open the
passage. Fails when one of them does not; writes pictures into var.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
from playwright.sync_api import Browser, Page

from datafari_rag.commands.demo.index import build_demo_index
from tests.browser.surfing import browsing
from tests.end_to_end.processes import free_port, service

ROOT = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("OPEN_WEBUI", ROOT / ".venvs" / "open-webui" / "bin" / "open-webui"))
IMAGES = ROOT / "var"

START_S = 600.0
ANSWER_MS = 60_000
KEY = "a-key-for-open-webui"
JWT_SECRET = "a-secret-that-both-programs-know"
QUESTION = "How are Enums and Flags different?"
PEOPLE = {"alice@example.org": ["group:python"], "bob@example.org": ["group:postgres"]}
ALICE, BOB = PEOPLE


def settings_of(folder: Path) -> dict[str, str]:
    """Return what the service runs with: the demo's documents, users known by Open WebUI's signed token alone."""
    build_demo_index(folder / "index")
    (folder / "users.json").write_text(json.dumps(PEOPLE), encoding="utf-8")
    return {
        "solr.url": f"embedded:{folder / 'index'}",
        "rag.api.endpoint": "builtin:extractive",
        "rag.model": "",
        "rag.maxJsonLength": "6000",
        "security.identity": "jwt",
        "security.jwt.header": "X-OpenWebUI-User-Jwt",
        "security.jwt.secret": JWT_SECRET,
        "security.jwt.issuer": "open-webui",
        "security.jwt.claims.user": "email",
        "security.tokens": "file",
        "security.tokens.file": str(folder / "users.json"),
        "security.anonymous": "refuse",
        "server.api.keys": KEY,
    }


@contextmanager
def open_webui(folder: Path, api: str) -> Iterator[str]:
    """Run Open WebUI with an empty database of its own; yield its address."""
    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "DATA_DIR": str(folder / "data"),
        "WEBUI_SECRET_KEY": "only-for-this-trial",
        "OPENAI_API_BASE_URL": f"{api}/v1",
        "OPENAI_API_KEY": KEY,
        "ENABLE_OLLAMA_API": "false",
        "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
        "FORWARD_USER_INFO_HEADER_JWT_SECRET": JWT_SECRET,
        "BYPASS_MODEL_ACCESS_CONTROL": "true",
        "DEFAULT_USER_ROLE": "user",
        # No built-in models, and no external servers.
        "RAG_EMBEDDING_ENGINE": "openai",
        "BYPASS_EMBEDDING_AND_RETRIEVAL": "true",
        "AUDIO_STT_ENGINE": "openai",
        "OFFLINE_MODE": "true",
        "HF_HUB_OFFLINE": "1",
        "ANONYMIZED_TELEMETRY": "false",
        "DO_NOT_TRACK": "true",
    }
    with (folder / "open-webui.log").open("wb") as log:
        command = [str(PROGRAM), "serve", "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen(command, env=environ, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(process, f"http://127.0.0.1:{port}/health", folder / "open-webui.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    limit = time.monotonic() + START_S
    while time.monotonic() < limit and process.poll() is None:
        try:
            if requests.get(health, timeout=5).ok:
                return
        except requests.RequestException:
            time.sleep(1)
    raise SystemExit(f"Open WebUI does not answer:\n{log.read_text(errors='replace')[-4000:]}")


def signed_up(home: str, email: str, admin: str | None = None) -> str:
    """Return the token of a new account: the administrator's own, or one that he adds."""
    body = {"name": email.partition("@")[0].title(), "email": email, "password": f"{email}-password", "role": "user"}
    path, headers = ("signup", {}) if admin is None else ("add", {"Authorization": f"Bearer {admin}"})
    reply = requests.post(f"{home}/api/v1/auths/{path}", json=body, headers=headers, timeout=30)
    reply.raise_for_status()
    return str(reply.json()["token"])


def asked(browser: Browser, home: str, token: str) -> Page:
    """Return the page of a chat in which the question was asked and answered."""
    page = browser.new_page(viewport={"width": 1180, "height": 760}, locale="en-US")
    page.goto(home)
    page.evaluate("token => { localStorage.token = token; localStorage.locale = 'en-US'; }", token)
    page.goto(home)
    page.locator("#chat-input").click()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Regenerate").last.wait_for(timeout=ANSWER_MS)
    return page


def check(page: Page, email: str) -> str:
    """Return the answer that *email* sees, after its source was opened: a chip, the quoted passages, a link to them."""
    answer, name = page.locator(".chat-assistant").last.inner_text(), email.partition("@")[0]
    chips = page.get_by_role("button", name=re.compile(r"Toggle \d+ source"))
    sources = chips.count()
    say(f"{email}: {sources} source button(s): {answer[:200]!r}")
    assert sources == 1 or email != ALICE
    if sources:
        chips.last.click()
        page.screenshot(path=IMAGES / f"open-webui-{name}.png")
        page.locator("button[id^='source-']").first.click()
        link = page.get_by_role("link", name="Content", exact=True).first
        link.wait_for(timeout=ANSWER_MS)
        say(f"{email}: opens {link.get_attribute('href')}")
        assert re.match(r"https?://\S+#:~:text=\w+", str(link.get_attribute("href")))
        if email == ALICE:
            page.screenshot(path=IMAGES / "open-webui-source.png")
    return answer


def say(text: str) -> None:
    """Print one line of what was seen."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(folder: Path) -> None:
    """Let two people ask, and check what each of them sees."""
    with service(folder, settings_of(folder)) as ours, open_webui(folder, ours.url) as home, browsing() as browser:
        admin = signed_up(home, "admin@example.org")
        seen: dict[str, str] = {}
        for email in PEOPLE:
            page = asked(browser, home, signed_up(home, email, admin))
            seen[email] = check(page, email)
            page.close()
        assert seen[ALICE] != seen[BOB], seen
        say("the two answers differ")


def main() -> None:
    """Run in a temporary folder, kept when its name is given."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        run(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))


if __name__ == "__main__":
    main()
