"""
The layout and the outer limits of the code (CONTRIBUTING.md), measured on the code itself.

A failing case names file and line; the rule is in the table at the top.
"""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "datafari_rag"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "resources" not in path.parts)
# What measures and tries the service; it may import all of it, and the service nothing of this.
TRIALS = ROOT / "datafari_rag_trials"
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
    *["text", "model", "settings", "query", "citations", "passages", "meaning", "answer", "steps", "whole", "solr"],
)
FREE = {"commands", "bootstrap", "resources", "__init__", "__main__"}

# Libraries that compute and no more: no clock, file, network or log.
PURE_LIBRARIES = {"rapidfuzz", "msgspec"}

# What a package may import besides the standard library; a package that is absent may take one library a file.
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
        "markupsafe",
        "prometheus_client",
        "itsdangerous",
        "limits",
        "orjson",
    },
    "server": {"gunicorn", "gevent"},
    "connection": {"gunicorn", "gevent"},
    "commands": {"click", "rich"},
}
# What one module, or the modules of one folder, may import beyond their package's row.
OF_ONE_PLACE: dict[str, set[str]] = {
    # Vectors, where their library is installed.
    "core/meaning/": {"numpy"},
    # Models whose weights a package ships as arrays are written as ONNX files once, when they are downloaded.
    "commands/packed_model.py": {"numpy", "sentencepiece", "tokenizers", "onnxruntime"},
    # An agent's side of /mcp, which speaks HTTP to the service from outside; no other part is such a client.
    "commands/mcp_probe.py": {"requests"},
}
# Libraries that count as one in a file: a dependency of the first, its decoder, or a description of the second.
TOGETHER = [
    {"requests", "urllib3"},
    {"pysolr", "requests", "orjson"},
    {"jwt", "cryptography"},
    {"onnxruntime", "numpy"},
    {"tantivy", "numpy"},
    {"gevent", "greenlet"},
    {"bs4", "lxml"},
    {"pdfplumber", "pypdfium2"},
]
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

MAX_FILES = 14
MAX_MODULE_LINES = 800
MAX_FUNCTION_LINES = 60
MAX_BRANCHES = 14
MAX_PARAMETERS = 5
USUAL_FUNCTION_LINES = 32
# What was done to a value is no name of it, and "one" names nothing; `found_documents` and `sorted` are fine.
NO_NAMES = {
    "one", "ones", "asked", "begun", "brought", "done", "found", "given", "gone", "got", "heard", "held", "kept",
    "known", "left", "made", "meant", "said", "seen", "sent", "shown", "taken", "told", "wanted", "written",
}  # fmt: skip
# The side of a box, or of a figure; and a member of a file that is written from the fields of its record.
NOUNS_ALL_THE_SAME = {("pdf.py", "left"), ("reports.py", "left"), ("passage_texts.py", "kept")}


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
    here, broken, libraries = room(path), [], set()
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
            libraries.add(top)
            if here in BESIDES and top not in BESIDES[here] | own:
                broken.append(f"{where} is no library of {here}")
        elif (here, top) not in PURE_EXCEPTIONS and here in PURE_ROOMS and is_impure(name):
            broken.append(f"{where} is not pure")
    if (
        here not in BESIDES
        and here not in FREE
        and len(libraries) > 1
        and not any(libraries <= set_ for set_ in TOGETHER)
    ):
        broken.append(f"{path.relative_to(ROOT)}: more than one library: {sorted(libraries)}")
    return broken


def functions(path: Path) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    doc = node.body[0]
    if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) and isinstance(doc.value.value, str):
        length -= (doc.end_lineno or doc.lineno) - doc.lineno + 1
    return length


def branches(node: ast.AST) -> int:
    total = 1
    for inner in ast.walk(node):
        match inner:
            case ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.ExceptHandler() | ast.IfExp():
                total += 1
            case ast.BoolOp():
                total += len(inner.values) - 1
            case ast.comprehension():
                total += 1 + len(inner.ifs)
            case ast.match_case():
                total += 1
    return total


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return sum(argument.arg not in ("self", "cls") for argument in arguments)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_package_may(path: Path) -> None:
    assert foreign(path) == []


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_package_of_core_imports_only_what_is_below_it(path: Path) -> None:
    own = FLOORS.index(floor(path.relative_to(PACKAGE).with_suffix("").parts))
    names = [name.split(".")[1:] for name, _ in imports(path) if name.startswith("datafari_rag.core.")]
    assert [name for name in names if FLOORS.index(floor(name)) > own] == []


def floor(module: Sequence[str]) -> str:
    """Return which of `FLOORS` *module* (core, …) is or is in, "" for one of the values."""
    is_package = (PACKAGE / "core" / module[1]).is_dir()
    return module[1] if is_package or module[1] in FLOORS else FLOORS[0]


@pytest.mark.parametrize(
    ("started", "needless"),
    [
        pytest.param(
            "commands.serve bootstrap server",
            "datafari_rag_trials datafari_rag.commands.downloads",
            id="serving: programs for trials",
        ),
        # Those of extras that the example's settings do not need: a service installed without them starts.
        pytest.param(
            "commands.serve bootstrap server",
            "jwt opentelemetry redis onnxruntime tokenizers sentencepiece tiktoken docx rich aiohttp matplotlib",
            id="serving: libraries of extras",
        ),
        # It reads files beside a server that starts, on the same cores.
        pytest.param(
            "commands.demo.watch adapters.embedded.writer",
            "flask requests pysolr numpy datafari_rag.web",
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


def test_no_package_has_more_than_fourteen_files() -> None:
    """A newcomer finds the file they want by its name alone."""
    files = Counter(path.parent for path in ALL_MODULES if path.name != "__init__.py")
    crowded = {str(folder.relative_to(ROOT)): count for folder, count in files.items() if count > MAX_FILES}
    assert crowded == {}


def test_no_module_is_longer_than_eight_hundred_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {lines}"
        for path in ALL_MODULES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_MODULE_LINES
    ]
    assert long == []


def test_no_function_is_longer_than_sixty_lines() -> None:
    assert [
        f"{name}: {lines}"
        for path in ALL_MODULES
        for node, name in functions(path)
        if (lines := body_lines(node)) > MAX_FUNCTION_LINES
    ] == []


def test_nine_functions_in_ten_have_at_most_thirty_two_lines() -> None:
    sizes = [body_lines(node) for path in ALL_MODULES for node, _ in functions(path)]
    assert sum(size <= USUAL_FUNCTION_LINES for size in sizes) >= 0.9 * len(sizes)


def test_no_function_has_more_than_fourteen_branches() -> None:
    assert [
        f"{name}: {count}"
        for path in ALL_MODULES
        for node, name in functions(path)
        if (count := branches(node)) > MAX_BRANCHES
    ] == []


def test_no_function_has_more_than_five_parameters() -> None:
    crowded = []
    for path in ALL_MODULES:
        if "click" in dict(imports(path)):
            continue  # click hands every option over as a parameter
        for node, name in functions(path):
            total = parameters(node)
            if total > MAX_PARAMETERS and node.name != "__init__":
                crowded.append(f"{name}: {total}")
    assert crowded == []


CACHE = re.compile(r"(functools\.)?(lru_)?cache\b")


def test_what_is_kept_for_ever_depends_on_nothing_that_a_request_says() -> None:
    """What texts are made of is kept by `core.text.words.Remembered`, which bounds how many and how long they are."""
    kept = [
        name
        for path in MODULES
        for node, name in functions(path)
        if parameters(node) and any(CACHE.match(ast.unparse(one)) for one in node.decorator_list)
    ]
    assert kept == []


def test_no_package_is_without_a_noun() -> None:
    forbidden = re.compile(r"utils?|common|helpers?|manager|base|misc")
    assert [
        str(path.relative_to(ROOT))
        for path in MODULES
        if any(forbidden.fullmatch(p) for p in (path.stem, *path.parts[:-1]))
    ] == []


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
    assert len(caught) <= 1


def test_the_filter_is_made_in_one_place() -> None:
    callers = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "filter_for"
    }
    assert callers == {"datafari_rag/pipeline.py"}


def test_at_most_one_test_in_twenty_uses_a_mock() -> None:
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    texts = [path.read_text(encoding="utf-8") for path in tests]
    count = sum(len(re.findall(r"^\s*(?:async )?def test_", text, re.M)) for text in texts)
    mocks = sum(len(re.findall(r"monkeypatch\.setattr|\bMock\(|\bpatch\(|MagicMock", text)) for text in texts)
    assert mocks * 20 <= count


def test_what_runs_a_module_stands_at_its_end() -> None:
    """What follows it is not there yet: the command that fits `rag.evidence.min` failed with a NameError."""
    early = [
        str(path.relative_to(ROOT))
        for path in ALL_MODULES
        for one in ast.parse(path.read_text(encoding="utf-8")).body[:-1]
        if isinstance(one, ast.If) and "__name__" in ast.dump(one.test)
    ]
    assert early == []


def test_no_class_name_is_used_twice() -> None:
    """One word has one meaning: a reader who searches for a class finds it."""
    places: dict[str, list[str]] = {}
    for path in ALL_MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def bound_names(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each name of a function, class, parameter, attribute or variable where it is bound, with its line."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


def test_no_name_is_a_participle_or_one() -> None:
    """A name says what a value is: `found` may be a place, a match or a document."""
    assert [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in ALL_MODULES
        for name, line in bound_names(path)
        if name.strip("_").lower() in NO_NAMES and (path.name, name) not in NOUNS_ALL_THE_SAME
    ] == []


def test_the_drawing_of_the_packages_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert runpy.run_path(str(ROOT / "docs" / "write_structure.py"))["page"](text) == text, "run `make fix`"
    assert "pipeline --> core" in text
