#!/usr/bin/env bash
# Co-residency under pressure and a crash on one GPU, without a network: two minutes.
#
# usage: LLAMA_SERVER=/path/to/llama-server LLAMA_MODEL=/path/to/smollm2.gguf bash campaigns/lifecycle/gpu.sh OUT
#
# Needs Python 3.10 or newer with httptools and nvidia-ml-py (PYTHON names it), libcuda for the ballast, GPU 0 to itself.
# PYTHONPATH may name a folder with the packages. OUT/runs gets the run folders, OUT/record the record and its evidence
# if both runs bear one; it is then verified with every mutation.
set -euo pipefail

[[ $# -eq 1 && $1 != -* ]] || { sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${PYTHON:-python3}
mkdir -p "$1"
out=$(cd "$1" && pwd)
for path in "${LLAMA_SERVER:?names llama-server}" "${LLAMA_MODEL:?names the GGUF file}"; do
  [[ -f $path ]] || { echo "error: $path: no such file" >&2; exit 2; }
done
expected=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
[[ $(sha256sum <"$LLAMA_MODEL") == "$expected "* ]] || { echo "error: $LLAMA_MODEL is not the model that the record names" >&2; exit 2; }
export LLAMA_SERVER LLAMA_MODEL
cd "$root"
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}
code=0
"$python" -B -m evidence lifecycle run campaigns/lifecycle/lifecycle-gpu.toml --runs "$out/runs" || code=$?
if [[ $code -eq 0 ]]; then
  "$python" -B -m evidence lifecycle summarize "$out"/runs/gpu-co-residency-* "$out"/runs/gpu-crash-* --output "$out/record" \
    --title "Model lifecycle observations on one GPU"
  "$python" -I -B verifiers/verify-lifecycle.py "$out/record/record.json" --evidence "$out/record/evidence" --mutation-control=all | tail -n 40
else
  tail -n 5 "$out"/runs/*/logs/*.log >&2 || true
fi
exit "$code"
