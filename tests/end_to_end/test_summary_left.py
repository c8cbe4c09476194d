"""A reader who leaves while a model summarises: its calls end, and no further one begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datafari_rag.bootstrap import writer_for
from tests.end_to_end.processes import service
from tests.settings import settings_with
from tests.stub import running_stub
from tests.waiting import until

SENTENCE = "The supplier delivers the spare part number {} within nine days of the order. "


@pytest.mark.parametrize(
    ("strategy", "model", "begun"),
    [
        pytest.param("refine", "stall-after-3", 1, id="piece after piece, the model silent"),
        pytest.param(
            "mapreduce", "words-3000-gap-20ms", 4, id="four parts at a time, the model slow", marks=pytest.mark.slow
        ),
    ],
)
def test_the_calls_of_a_summary_end_with_its_reader(tmp_path: Path, strategy: str, model: str, begun: int) -> None:
    index = f"embedded:{tmp_path / 'index'}"
    writer = writer_for(settings_with(solr_url=index))
    writer.add([{"id": "long", "title": "L", "exactContent": "".join(map(SENTENCE.format, range(200)))}])
    writer.commit()
    writer.close()
    with running_stub() as stub:
        settings = {
            "solr.url": index, "rag.api.endpoint": stub.url, "rag.model": model, "llm.limits.retries": "0",
            "prompt.max.request.size": "3000", "prompt.chunking.strategy": strategy,
        }  # fmt: skip
        with service(tmp_path, settings) as found:
            body = {"action": "summarize", "id": "long"}
            with found.session.post(f"{found.url}/rest/v2.0/ai/stream", json=body, stream=True, timeout=60) as response:
                lines = map(json.loads, response.iter_lines(chunk_size=1))
                told = next(line["data"]["estimate"] for line in lines if "estimate" in line["data"])
                assert told["pieces"] > 4
                until(lambda: len(stub.requests(model)) >= begun)
            assert stub.states(model, wanted="left") == ["left"] * begun
