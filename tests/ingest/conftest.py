"""The process that reads files is started once for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from datafari_rag.ingest.sandbox import Sandbox
from tests.ingest.house import House


@pytest.fixture(scope="module")
def reader() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def house(tmp_path: Path, reader: Sandbox) -> House:
    return House(tmp_path, reader)
