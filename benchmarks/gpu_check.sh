#!/usr/bin/env bash
# Serves a model on a GPU and plays a few campaigns, twice: `bash benchmarks/gpu_check.sh [MODEL]`.
# The model is a repository or a folder of weights. Says "not run" where no GPU or no vLLM for GPUs
# is present; $CADS_VLLM_PYTHON names the server's Python. Ends within ten minutes.
set -euo pipefail

model=${1:-Qwen/Qwen2.5-0.5B-Instruct}
python=${CADS_VLLM_PYTHON:-.vllm/bin/python}
port=${PORT:-8234}
not_run() { echo "GPU check: not run ($1)"; exit 0; }
[[ $(nvidia-smi -L 2>/dev/null) == *GPU* ]] || not_run "no GPU"
"$python" -c 'import importlib.metadata as m; m.version("vllm")' 2>/dev/null ||
    not_run "no vLLM in $python"

work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
cads serve "$model" --python "$python" --port "$port" --max-model-len 4096 >"$work/log" 2>&1 &
server=$!
for _ in $(seq 240); do
    curl -sf "http://127.0.0.1:$port/health" && break
    kill -0 "$server" 2>/dev/null || { tail -20 "$work/log"; exit 1; }
    sleep 2
done
given=(llm -A "model=$model" -A "base_url=http://127.0.0.1:$port/v1" -A context_tokens=4096)
given+=(--prompt thin --prompt informed --protocol proposer --registry synthetic-depmap/0)
# With batch invariance the answers do not depend on how many campaigns are under way.
cads run "${given[@]}" --seeds 0-3 --concurrency 8 --out "$work/eight"
cads run "${given[@]}" --seeds 0-3 --concurrency 3 --out "$work/three"
for name in campaigns rounds reads; do cmp "$work/eight/$name.jsonl" "$work/three/$name.jsonl"; done
cads run "${given[@]}" -A guided=untested --seeds 0-3 --concurrency 8 --out "$work/guided"
kill "$server" && wait "$server" || true
server=
cads replay "$work/eight"
cads report "$work/guided" >/dev/null
nvidia-smi --query-gpu=name --format=csv,noheader
echo "GPU check: passed"
