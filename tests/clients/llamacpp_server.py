"""
llama.cpp's own server with a model of random weights: `python llamacpp_server.py FOLDER TEMPLATE.jinja`.

Runs in an environment of its own (requirements-llamacpp.txt). The folder is for the model's file. Writes the address to
standard output, and serves until its standard input ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy
import xllamacpp

WIDTH, HEADS, FORWARD, WINDOW = 32, 2, 64, 8192
SPECIAL = ["<unk>", "<s>", "</s>"]
LETTERS = [chr(code) for code in range(33, 127)] + ["▁"]


def written(path: Path, template: str) -> Path:
    """Write a llama of one layer whose tokens are bytes and letters, about a hundred kilobytes."""
    writer = gguf.GGUFWriter(str(path), "llama")
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *LETTERS]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(LETTERS)
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(template)
    chance = numpy.random.default_rng(7)
    for name, shape in {
        "token_embd.weight": (len(tokens), WIDTH),
        "output.weight": (len(tokens), WIDTH),
        **{f"blk.0.attn_{part}.weight": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")},
        **{f"blk.0.ffn_{part}.weight": (FORWARD, WIDTH) for part in ("gate", "up")},
        "blk.0.ffn_down.weight": (WIDTH, FORWARD),
    }.items():
        writer.add_tensor(name, chance.normal(0, 0.2, shape).astype(numpy.float32))
    for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"):
        writer.add_tensor(name, numpy.ones(WIDTH, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def main() -> None:
    folder, template = Path(sys.argv[1]), Path(sys.argv[2]).read_text(encoding="utf-8")
    params = xllamacpp.CommonParams()
    params.model.path = str(written(folder / "model.gguf", template))
    params.model_alias = ["tiny"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.use_jinja = True
    params.warmup = False
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


main()
