"""
The borders of the code (docs/architecture.md): what imports what, and what stands in one place alone.

A failing case names file and line; the rule is in the table at the top.
"""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "datafari_rag"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "resources" not in path.parts)
# What measures and tries the service; it may import all of it, and the service nothing of this.
TRIALS = ROOT / "trials" / "datafari_rag_trials"
ALL_MODULES = [*MODULES, *sorted(TRIALS.rglob("*.py"))]

# What a package may import from this project.
OURS: dict[str, set[str]] = {
    "core": {"core"},
    "ports": {"core"},
    "llm_templates": {"core", "ports", "llm_templates"},
    "protocols": {"core", "ports", "protocols"},
    "retrieval": {"core", "ports"},
    "stepping": {"core", "ports", "retrieval"},
    "pipeline": {"core", "ports", "retrieval", "stepping"},
    "whole_documents": {"core", "ports", "pipeline"},
    "adapters": {"core", "ports", "adapters", "llm_templates", "extras"},
    "web": {"core", "ports", "pipeline", "whole_documents", "protocols", "web", "resources"},
    "server": {"bootstrap", "connection", "core"},
    "connection": {"core"},
    "ingest": {"core", "ports", "ingest", "resources", "extras"},
    "engine_writer": {"core", "ports", "adapters", "ingest"},
    "invoke_service": {"core", "ports", "protocols", "adapters"},
    "extras": set(),
}
# The packages of core from the lowest to the highest; all other modules that lie in core itself are the values below.
FLOORS = (
    "",
    *["text", "model", "settings", "query", "proof", "evidence", "meaning", "answer", "steps", "whole", "solr"],
)
FREE = {"commands", "bootstrap", "resources", "__init__", "__main__"}

# Libraries that compute and no more: no clock, file, network or log.
PURE_LIBRARIES = {"msgspec"}

# What a package may import besides the standard library; a package that is absent may import any.
BESIDES: dict[str, set[str]] = {
    "core": PURE_LIBRARIES,
    "ports": set(),
    "llm_templates": set(),
    "protocols": PURE_LIBRARIES,
    "retrieval": set(),
    "stepping": set(),
    "pipeline": set(),
    "whole_documents": set(),
    "web": {
        "flask",
        "werkzeug",
        "jinja2",
        "markdown_it",
        "markupsafe",
        "prometheus_client",
        "itsdangerous",
        "orjson",
    },
    "server": {"gunicorn", "gevent", "werkzeug"},
    "connection": {"gunicorn", "gevent"},
    "commands": {"click", "watchfiles"},
}
# What one module, or the modules of one folder, may import beyond their package's row.
OF_ONE_PLACE: dict[str, set[str]] = {
    # Vectors, where their library is installed.
    "core/meaning/": {"numpy"},
}
PURE_ROOMS = {
    "core",
    "ports",
    "llm_templates",
    "protocols",
    "retrieval",
    "stepping",
    "pipeline",
    "whole_documents",
}
IMPURE_STANDARD = {
    "asyncio", "concurrent", "ctypes", "http", "io", "logging", "mmap", "multiprocessing", "os", "pathlib", "queue",
    "random", "secrets", "select", "selectors", "shutil", "signal", "socket", "socketserver", "sqlite3", "ssl",
    "subprocess", "sys", "tempfile", "threading", "time", "uuid",
}  # fmt: skip
# The pipeline may log (CONTRIBUTING.md); urllib.parse is pure, urllib.request is not.
PURE_EXCEPTIONS = {("pipeline", "logging"), ("retrieval", "logging"), ("stepping", "logging")}


def room(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all that one module consists of; each module is parsed once for all rules."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.fixture(scope="module", autouse=True)
def _no_nodes_left() -> Iterator[None]:
    """Forget the modules after the last rule: 350,000 objects, through which the collector would go again and again."""
    yield
    nodes.cache_clear()


def imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module in ("datafari_rag", "pathlib"):
                yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield node.module, node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield "a relative import", node.lineno


def is_impure(name: str) -> bool:
    return name == "urllib.request" or (name.split(".")[0] in IMPURE_STANDARD and not name.startswith("pathlib.Pure"))


def foreign(path: Path) -> list[str]:
    """Return what the imports of one module break."""
    here, broken = room(path), []
    place = path.relative_to(PACKAGE).as_posix()
    own = {one for start, allowed in OF_ONE_PLACE.items() if place.startswith(start) for one in allowed}
    for name, line in imports(path):
        top = name.split(".")[0]
        where = f"{path.relative_to(ROOT)}:{line}: {name}"
        if top == "datafari_rag":
            target = [*name.split("."), "__init__"][1]
            if here not in FREE and target not in OURS[here] | {"__init__"}:
                broken.append(f"{where} may not be imported from {here}")
        elif top == TRIALS.name:
            broken.append(f"{where} measures the service and is no part of it")
        elif top not in sys.stdlib_module_names:
            if here in BESIDES and top not in BESIDES[here] | own:
                broken.append(f"{where} is no library of {here}")
        elif (here, top) not in PURE_EXCEPTIONS and here in PURE_ROOMS and is_impure(name):
            broken.append(f"{where} is not pure")
    return broken


def functions(path: Path) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return sum(argument.arg not in ("self", "cls") for argument in arguments)


def test_a_module_imports_only_what_its_package_may() -> None:
    assert [broken for path in MODULES for broken in foreign(path)] == []


def test_a_package_of_core_imports_only_what_is_below_it() -> None:
    above = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in MODULES
        if room(path) == "core"
        for name, line in imports(path)
        if name.startswith("datafari_rag.core.")
        and FLOORS.index(floor(name.split(".")[1:]))
        > FLOORS.index(floor(path.relative_to(PACKAGE).with_suffix("").parts))
    ]
    assert above == []


def floor(module: Sequence[str]) -> str:
    """Return which of `FLOORS` *module* (core, …) is or is in, "" for one of the values."""
    is_package = (PACKAGE / "core" / module[1]).is_dir()
    return module[1] if is_package or module[1] in FLOORS else FLOORS[0]


@pytest.mark.parametrize(
    ("started", "needless"),
    [
        pytest.param(
            "commands.serve bootstrap server",
            "datafari_rag_trials datafari_rag_trials.downloads",
            id="serving: programs for trials",
        ),
        # Those of extras that the example's settings do not need: a service installed without them starts.
        pytest.param(
            "commands.serve bootstrap server",
            "jwt opentelemetry onnxruntime tokenizers sentencepiece docx rich aiohttp matplotlib",
            id="serving: libraries of extras",
        ),
        # It reads files beside a server that starts, on the same cores.
        pytest.param(
            "commands.demo.watch adapters.embedded.writer",
            "flask urllib3 numpy datafari_rag.web",
            id="the watcher of a folder: the server",
        ),
        # What opens connections is imported after `server.prepare`, which it would otherwise not see.
        *(
            pytest.param(f"commands.{name}", "requests urllib3", id=f"{name}: connections before they can wait")
            for name in ("serve", "demo.command")
        ),
    ],
)
def test_what_is_started_imports_nothing_that_it_does_not_need(started: str, needless: str) -> None:
    wanted = ", ".join(f"datafari_rag.{name}" for name in started.split())
    program = (
        f"import sys, {wanted}\nprint(*(name for name in sys.modules if name.startswith({(*needless.split(),)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


CACHE = re.compile(r"(functools\.)?(lru_)?cache\b")


def test_what_is_kept_for_ever_depends_on_nothing_that_a_request_says() -> None:
    """What texts are made of is kept by `core.text.language.Remembered`, which bounds how many and how long."""
    kept = [
        name
        for path in MODULES
        for node, name in functions(path)
        if parameters(node) and any(CACHE.match(ast.unparse(one)) for one in node.decorator_list)
    ]
    assert kept == []


def test_exceptions_are_caught_wholesale_only_at_the_edge() -> None:
    caught = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        if room(path) not in {"commands", "invoke_service"}
        for node in nodes(path)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    ]
    assert caught == [place for place in caught if place.startswith("datafari_rag/web/api/answers.py")]


def test_the_filter_is_made_in_one_place() -> None:
    callers = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "filter_for"
    }
    assert callers == {"datafari_rag/pipeline.py"}


def test_the_drawing_of_the_packages_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert runpy.run_path(str(ROOT / "docs" / "write_structure.py"))["page"](text) == text, "run `make fix`"
    assert "pipeline --> core & " in text
