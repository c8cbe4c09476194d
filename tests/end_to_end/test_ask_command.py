"""`datafari-rag ask` prints the model's words as they come."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from datafari_rag.bootstrap import writer_for
from tests.end_to_end.processes import write_settings
from tests.settings import settings_with
from tests.support.stub import running_stub


def test_the_first_words_are_printed_while_the_model_is_still_silent_about_the_rest(tmp_path: Path) -> None:
    index = f"embedded:{tmp_path / 'index'}"
    writer = writer_for(settings_with(solr_url=index))
    writer.add([{"id": "a", "title": "Cities", "exactContent": "Paris is nice.", "language": "en"}])
    writer.commit()
    writer.close()
    with running_stub() as stub:
        write_settings(
            tmp_path,
            {
                "solr.url": index,
                "rag.api.endpoint": stub.url,
                "rag.model": "words-9-stall-after-3",
                "llm.limits.retries": "0",
            },
        )
        command = [sys.executable, "-m", "datafari_rag", "ask", "Is Paris nice?", "--conf", tmp_path / "rag.properties"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            assert process.stdout.read(len("word1 word2 word3")) == b"word1 word2 word3"
            assert process.poll() is None
            process.terminate()
            process.wait(20)
        assert stub.states("words-9-stall-after-3", wanted="left") == ["left"]


def test_the_effort_is_taken_and_its_steps_are_printed(tmp_path: Path) -> None:
    index = f"embedded:{tmp_path / 'index'}"
    writer = writer_for(settings_with(solr_url=index))
    song = "The album Diamond Cut was recorded by Bonnie Tyler."
    born = "Gaynor Hopkins was born in June."
    writer.add([{"id": "a", "title": "Diamond Cut", "exactContent": song, "language": "en"}])
    writer.add([{"id": "b", "title": "Bonnie Tyler", "exactContent": born, "language": "en"}])
    writer.commit()
    writer.close()
    write_settings(tmp_path, {"solr.url": index, "rag.api.endpoint": "builtin:extractive", "rag.maxFiles": "1"})
    command = [sys.executable, "-m", "datafari_rag", "ask", "When was the singer of Diamond Cut born?"]
    options = ["--conf", str(tmp_path / "rag.properties"), "--effort", "minimal"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True, timeout=60)

    assert "[2] Bonnie Tyler" in done.stdout
    assert "  search found=" in done.stderr
    assert "effort minimal: searches=" in done.stderr and "model calls=0" in done.stderr
