#!/usr/bin/env python3
"""llama.cpp's own HTTP server out of the Python wheel `xllamacpp`, under the flags of `llama-server`.

A campaign names it as `program = ["<python of engines/prepare-llama.sh>", "engines/serve_llama.py"]` for the adapter
`llama.cpp`, whose launch arguments are then the same as for a `llama-server` binary. Prints `ready HOST:PORT` once it
serves and ends on SIGTERM.

Two defaults differ from the binary's, for the sake of measurements: --cache-ram is 0, because finished prompts kept in
host memory would make both the resident memory and the next answer's speed depend on what was asked before; and
--threads is 1, so that two workers fit on two cores. --ctx-size is shared by the --parallel slots.
"""

import argparse
import signal
import sys
from pathlib import Path


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("-m", "--model", type=Path, required=True, metavar="GGUF")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8080)
    add("-a", "--alias", help="the model's name; requests may name any other too")
    add("-np", "--parallel", type=int, default=2, help="slots: the sequence cap")
    add("-c", "--ctx-size", type=int, default=4096, help="tokens of context, divided among the slots")
    add("-t", "--threads", type=int, default=1)
    add("-ctk", "--cache-type-k", choices=("f16", "q8_0", "q4_0"), default="f16")
    add("-ctv", "--cache-type-v", choices=("f16", "q8_0", "q4_0"), default="f16")
    add("-cram", "--cache-ram", type=int, default=0, metavar="MIB", help="host memory for finished prompts")
    add(
        "--lora-scaled", action="append", default=[], metavar="GGUF:SCALE", help="load an adapter; scale 0 keeps it off"
    )
    add("--embeddings", action="store_true", help="serve /v1/embeddings too, the mean over the tokens")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    adapters = [text.rpartition(":")[::2] for text in options.lora_scaled]
    for path in (options.model, *(Path(path) for path, _ in adapters)):
        if not path.is_file():
            sys.exit(f"error: {path} is not there, expected a GGUF file")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(options.model)
    params.hostnames, params.port = [options.host], options.port
    if options.alias:
        params.model_alias = {options.alias}
    params.n_parallel, params.n_ctx = options.parallel, options.ctx_size
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.cache_type_k = getattr(xllamacpp.ggml_type, "GGML_TYPE_" + options.cache_type_k.upper())
    params.cache_type_v = getattr(xllamacpp.ggml_type, "GGML_TYPE_" + options.cache_type_v.upper())
    params.cache_ram_mib = options.cache_ram
    params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(path, float(scale)) for path, scale in adapters]
    if options.embeddings:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN

    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before the server's threads exist, so that they inherit it
    server = xllamacpp.Server(params)
    print(f"ready {server.listening_address.removeprefix('http://')}", flush=True)
    signal.sigwait(ends)


if __name__ == "__main__":
    main()
