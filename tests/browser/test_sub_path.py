"""The service below a path of a host that serves other things too, behind a proxy that strips the path or keeps it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
import requests
from playwright.sync_api import Browser, expect

from datafari_rag.commands.demo.index import build_demo_index
from tests.browser.conftest import Come
from tests.browser.places import DEMO, USERS
from tests.end_to_end.processes import free_port, service
from tests.required import program
from tests.test_deploy import proxy

pytestmark = pytest.mark.browser

QUESTION = "How do I copy a file in Python?"
PASSED = {"stripped": "/", "kept": "/rag/"}
"""What the proxy asks for in place of `/rag/`."""

SITE = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  {servers}
}}
"""
SERVER = """server {{
  listen 127.0.0.1:{port};
  location /rag/ {{ proxy_pass {backend}{passed}; proxy_set_header Host $http_host; proxy_buffering off; }}
  location / {{ return 404; }}
}}"""


@pytest.fixture(scope="module")
def homes(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The demo's address below `/rag` of each proxy."""
    folder = tmp_path_factory.mktemp("below")
    build_demo_index(folder / "index")
    (folder / "users.json").write_text(json.dumps(USERS), encoding="utf-8")
    ports = {name: free_port() for name in PASSED}
    public = {"server.public_url": f"http://127.0.0.1:{ports['stripped']}/rag"}
    with service(folder, {**DEMO, **public, "solr.url": "embedded:index"}, workers=1) as found:
        servers = [SERVER.format(port=ports[name], backend=found.url, passed=path) for name, path in PASSED.items()]
        conf = folder / "nginx.conf"
        conf.write_text(SITE.format(folder=folder, servers="\n".join(servers)))
        command = [program("nginx", "apt-get install nginx-light"), "-c", str(conf)]
        with proxy(command, ports["kept"]):
            yield {name: f"http://127.0.0.1:{port}/rag" for name, port in ports.items()}


@pytest.mark.parametrize("name", list(PASSED))
def test_a_reader_asks_checks_and_goes_on_below_the_path(homes: dict[str, str], come: Come, name: str) -> None:
    page = come(homes[name], alone=True).ask(QUESTION)
    assert page.url.startswith(f"{homes[name]}/?q=")
    page.locator(".prose .badge").first.click()
    expect(page.locator("dialog mark")).not_to_be_empty()
    page.locator("dialog").get_by_role("link").click()
    expect(page.locator("#passage")).not_to_be_empty()
    page.get_by_role("link", name="Français").click()
    expect(page.locator("html")).to_have_attribute("lang", "fr")
    page.select_option("#user", "admin")
    page.locator("#switch").click()
    page.locator(".top a", has_text="Réglages").click()
    expect(page.locator(".top a[aria-current=page]")).to_be_visible()


@pytest.mark.parametrize("name", list(PASSED))
def test_every_link_of_every_page_leads_below_the_path(homes: dict[str, str], name: str) -> None:
    pages = [f"{homes[name]}/", f"{homes[name]}/?q={QUESTION}&answer=page", f"{homes[name]}/none"]
    document = requests.get(pages[1], timeout=30).text
    opened = re.search(r'href="([^"]*/documents\?[^"]*)"', document)
    assert opened is not None
    pages.append(urljoin(homes[name], opened[1].replace("&amp;", "&")))
    for address in pages:
        html = requests.get(address, headers={"Accept": "text/html"}, timeout=30).text
        links = {link for link in re.findall(r'(?:href|src|action)="([^"#]+)"', html) if "://" not in link}
        assert [link for link in links if not link.startswith("/rag/")] == []
        assert len(links) > 1 or address.endswith("/none")


def test_the_description_of_the_paths_names_where_they_are(homes: dict[str, str]) -> None:
    described = requests.get(f"{homes['kept']}/openapi.json", timeout=30).json()
    assert described["servers"] == [{"url": homes["stripped"]}]
