"""A reader who leaves while a model summarises: its calls end, and no further one begins."""

from __future__ import annotations

import json
from pathlib import Path

from datafari_rag.bootstrap import writer_for
from tests.end_to_end.processes import service
from tests.settings import settings_with
from tests.support.stub import running_stub
from tests.support.waiting import until

SENTENCE = "The supplier delivers the spare part number {} within nine days of the order. "


MODEL = "stall-after-3"


def test_the_call_of_a_summary_ends_with_its_reader(tmp_path: Path) -> None:
    index = f"embedded:{tmp_path / 'index'}"
    writer = writer_for(settings_with(solr_url=index))
    writer.add([{"id": "long", "title": "L", "exactContent": "".join(map(SENTENCE.format, range(2000)))}])
    writer.commit()
    writer.close()
    with running_stub() as stub:
        settings = {
            "solr.url": index, "rag.api.endpoint": stub.url, "rag.model": MODEL, "llm.limits.retries": "0",
        }  # fmt: skip
        with service(tmp_path, settings) as found:
            body = {"action": "summarize", "id": "long"}
            with found.session.post(f"{found.url}/rest/v2.0/ai/stream", json=body, stream=True, timeout=60) as response:
                lines = map(json.loads, response.iter_lines(chunk_size=1))
                told = next(line["data"]["estimate"] for line in lines if "estimate" in line["data"])
                assert told["pieces"] > 1
                until(lambda: stub.requests(MODEL))
            assert stub.states(MODEL, wanted="left") == ["left"]
