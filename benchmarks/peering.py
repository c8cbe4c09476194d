"""
Services that others wrote, in environments of their own, before the same stubs: two workers, connections kept.

Set up in their favour where they leave a choice: no keys, no database, no telemetry, no log of each request.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from benchmarks import streaming
from benchmarks.bench import Bench, Maker, with_target
from benchmarks.measuring import Result, Target
from benchmarks.processes import free_port, running
from benchmarks.services import HERE, Stubs, program, stubs

PACE = "300x50"
"""The streams that every peer is measured with."""


def peer(name: str) -> Callable[[Bench], Result]:
    """Return the row of one peer: its versions, and its streams."""

    def row(bench: Bench) -> Result:
        """Return what was measured."""
        make, packages = PEERS[name]
        with stubs(bench.folder / name) as behind:
            streams = with_target(behind, make, lambda behind, target: streaming.paced(bench, behind, target, PACE))
        return {"versions": _versions(name, packages), PACE: streams}

    return row


@contextmanager
def litellm(behind: Stubs) -> Iterator[Target]:
    """Run LiteLLM's proxy before the stub model. Without a key it starts only if its configuration allows this."""
    conf = behind.folder / "litellm.yaml"
    api = f"http://127.0.0.1:{behind.model.port}/v1"
    conf.write_text(
        "model_list:\n  - model_name: stub\n    litellm_params:\n      model: openai/stub\n"
        f"      api_base: {api}\n      api_key: none\n"
        "litellm_settings:\n  telemetry: false\n  num_retries: 0\n"
        "general_settings:\n  dangerously_permit_weak_or_unset_master_key: true\n",
        encoding="utf-8",
    )
    port = free_port()
    command = [program("litellm", "litellm"), "--config", conf, "--port", str(port), "--host", "127.0.0.1"]
    environ = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "DISABLE_ADMIN_UI": "True",
        "NO_PROXY": "*",
    }
    log = behind.folder / "litellm.log"
    with running([*command, "--num_workers", "2"], port=port, log=log, environ=environ, start_s=150) as found:
        yield Target("LiteLLM proxy", port, found, (behind.model,))


@contextmanager
def haystack(behind: Stubs, *, solr: str = "") -> Iterator[Target]:
    """Run a RAG service of Haystack, served by Hayhooks, before both stubs, or with the handler at *solr*."""
    port = free_port()
    command = [program("haystack", "hayhooks"), "run", "--host", "127.0.0.1", "--port", str(port), "--workers", "2"]
    environ = {
        "SOLR": solr or f"http://127.0.0.1:{behind.solr.port}/solr/bench/select",
        "MODEL": f"http://127.0.0.1:{behind.model.port}/v1",
        "HAYHOOKS_PIPELINES_DIR": str(HERE / "peers" / "haystack"),
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "LOG": "WARNING",
        "NO_PROXY": "*",
    }
    log = behind.folder / "haystack.log"
    switches = ["--without-monitoring", "--without-tracing"]
    with running([*command, *switches], port=port, log=log, environ=environ, start_s=150) as found:
        yield Target("Haystack", port, found, behind.both())


@contextmanager
def langchain(behind: Stubs, *, solr: str = "") -> Iterator[Target]:
    """Run a chain of LangChain, served by uvicorn, before both stubs, or with the handler at *solr*."""
    port = free_port()
    command = [program("langchain", "uvicorn"), "service:app", "--port", str(port), "--workers", "2", "--no-access-log"]
    environ = {
        "SOLR": solr or f"http://127.0.0.1:{behind.solr.port}/solr/bench/select",
        "MODEL": f"http://127.0.0.1:{behind.model.port}/v1",
        "LANGSMITH_TRACING": "false",
        "NO_PROXY": "*",
    }
    log = behind.folder / "langchain.log"
    folder = ["--app-dir", HERE / "peers" / "langchain"]
    with running([*command, *folder], port=port, log=log, environ=environ, start_s=150) as found:
        yield Target("LangChain", port, found, behind.both())


def _versions(venv: str, packages: tuple[str, ...]) -> Mapping[str, str]:
    told = "import sys, importlib.metadata as m; print(*(m.version(name) for name in sys.argv[1:]))"
    command = [program(venv, "python"), "-c", told, *packages]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    return dict(zip(packages, done.stdout.split(), strict=True))


PEERS: Mapping[str, tuple[Maker, tuple[str, ...]]] = {
    "litellm": (litellm, ("litellm", "uvicorn", "fastapi", "aiohttp")),
    "langchain": (langchain, ("langchain-core", "langchain-openai", "uvicorn", "fastapi")),
    "haystack": (haystack, ("haystack-ai", "hayhooks", "uvicorn", "openai")),
}
