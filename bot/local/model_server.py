"""The bundled model's server program: llama.cpp behind its OpenAI-compatible HTTP, on loopback only.

A program of its own, run by path and importing nothing of the bot, so that the model's memory and its
native code never live in the bot's process. This is the only file that imports xllamacpp.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence

ERRORS_ONLY = 1
PROMPT_CACHE_MIB = 256
BATCH = 128


def main(argv: Sequence[str] | None = None) -> None:
    """Serve the model until SIGTERM."""
    import xllamacpp

    given = _arguments(argv)
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.model_alias = {given.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = given.port
    params.n_ctx = given.context * given.slots
    params.n_parallel = given.slots
    # Small, so that a request which is given up lets go of the processor within a second.
    params.n_batch = params.n_ubatch = BATCH
    # A slot whose beginning is still the same goes on being used after an eviction.
    params.slot_prompt_similarity = 0.02
    params.cpuparams.n_threads = given.threads
    params.cpuparams_batch.n_threads = given.threads
    # Without these so small a model soon says one sentence for ever.
    params.sampling.temp = 0.3
    params.sampling.penalty_repeat = 1.1
    params.sampling.dry_multiplier = 0.8
    params.sampling.dry_allowed_length = 6
    params.sampling.dry_penalty_last_n = 1024
    params.verbosity = ERRORS_ONLY  # prompts are nobody's to read in a log
    params.cache_ram_mib = PROMPT_CACHE_MIB  # its own default is 8 GiB
    # Web pages that a person has open have no business here.
    params.cors_origins = f"http://127.0.0.1:{given.port}"
    params.ui = False
    params.endpoint_slots = False
    server = xllamacpp.Server(params)
    try:
        signal.pause()
    finally:
        del server


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serve a model on 127.0.0.1.")
    parser.add_argument("--model", required=True, help="the weights, a GGUF file")
    parser.add_argument("--alias", required=True, help="the model's name to its clients")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--context", type=int, required=True, help="tokens per slot")
    parser.add_argument("--slots", type=int, required=True, help="requests answered at the same time")
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
