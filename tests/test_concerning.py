from __future__ import annotations

from pathlib import Path

import pytest

from tests.concerning import MANY, concerning

MODULES = sorted(path for path in Path("datafari_rag").rglob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("core/citations/links.py", "core/citations/test_links.py"),
        ("core/access.py", "core/test_revocation.py"),
        ("stepping.py", "stepping/test_run.py"),
        ("invoke_service.py", "invoke_service/test_invoke.py"),
        ("web/admin/usage.py", "web/admin/test_questions.py"),
    ],
    ids=["by its name", "by what it imports", "by its folder", "a module with a folder of tests", "beside it"],
)
def test_what_concerns_a_module_is_found(module: str, file: str) -> None:
    assert Path("tests", file) in concerning(Path("datafari_rag", module))


def test_each_module_has_tests_that_concern_it_and_not_too_many() -> None:
    found = {str(module): len(concerning(module)) for module in MODULES}
    assert {module: count for module, count in found.items() if not 0 < count <= MANY} == {}


def test_what_is_no_module_has_none() -> None:
    assert concerning(Path("datafari_rag/nothing.py")) == []


def test_each_folder_is_of_the_package_or_of_a_module_or_named_in_architecture_md() -> None:
    ours = {path.stem for path in Path("datafari_rag").iterdir()}
    page = Path("docs/architecture.md").read_text("utf-8")
    folders = {path.parent.name for path in Path("tests").glob("*/*.py")}
    assert {
        name for name in folders if name not in ours and f"`{name}`" not in page and f"tests/{name}`" not in page
    } == set()
