#!/usr/bin/env bash
# Carries out the campaign beside this file on a machine with two GPUs, in the order of what matters most, and never
# twice: what is in RUNS already is kept, and a name that has a run there is passed over.
#
# usage: capture.sh ENGINES RUNS [NAME...]      PYTHON names the interpreter (default python3)
#
# ENGINES holds vllm/, llama-server, smollm2.gguf and smollm2-135m/. `llama-interrupted` is interrupted on purpose
# once 120 samples are in. `lifecycle` stands for the co-residency and crash protocols on the first GPU.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
engines=${1:?ENGINES} runs=${2:?RUNS}
shift 2
python=${PYTHON:-python3}
export H200_ENGINES=$engines LLAMA_SERVER=$engines/llama-server LLAMA_MODEL=$engines/smollm2.gguf
names=("$@")
[[ ${#names[@]} -gt 0 ]] || names=(vllm-memory vllm-sequence-cap llama-sequence-cap llama-memory llama-native llama-rr-memory
  llama-rr-queue llama-interrupted lifecycle tensorrt-llm-native sglang-rr large-native large-rr gemma-native gemma-rr
  vllm-native vllm-rr-queue vllm-rr-memory vllm-rr-queue-4 llama-rr-queue-4)
mkdir -p "$runs"
cd "$here/../.."

command=("$python" -B -m evidence capture campaigns/h200-smollm2/campaign.toml --runs "$runs" -q --case)
capture() { "${command[@]}" "$1"; }

interrupted() {
  "${command[@]}" "$1" & # the runner itself, no shell around it that would take the signal instead
  local runner=$! journal
  for _ in $(seq 3000); do
    journal=$(ls -d "$runs/$1"-2*/journal.jsonl 2>/dev/null | tail -n 1)
    if [[ $journal && $(grep -c '"event": "sample"' "$journal") -ge 120 ]]; then
      kill -TERM "$runner"
      break
    fi
    sleep 0.1
  done
  wait "$runner"
}

for name in "${names[@]}"; do
  if compgen -G "$runs/$name-2*" >/dev/null; then
    echo "$name: has a run, kept"
    continue
  fi
  started=$SECONDS
  case $name in
    lifecycle)
      CUDA_VISIBLE_DEVICES=0 "$python" -B -m evidence lifecycle run campaigns/lifecycle/lifecycle-gpu.toml --runs "$runs"
      ;;
    llama-interrupted) interrupted "$name" ;;
    *) capture "$name" ;;
  esac
  echo "$name: exit $?, $((SECONDS - started)) s"
done
echo "all done"
