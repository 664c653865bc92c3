#!/usr/bin/env bash
# The paper's three models on one GPU, one after another: `bash llm.sh [FOLDER]`.
# Needs `pip install 'cads-env[llm]'` and a virtual environment with vLLM (`cads serve` says how).
# Started again with the same folder it goes on where it was; nothing is asked twice.
set -euo pipefail

out=${1:-runs/paper}
port=${PORT:-8000}
url=http://127.0.0.1:$port
declare -A weights=(
    [qwen2.5-7b]=Qwen/Qwen2.5-7B-Instruct
    [mistral-nemo]=mistralai/Mistral-Nemo-Instruct-2407
    [llama-3.1-8b]=meta-llama/Llama-3.1-8B-Instruct
)
server=
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" || true
        server=
    fi
}
trap stop EXIT

models=(qwen2.5-7b mistral-nemo llama-3.1-8b)
quotas=()
mkdir -p "$out"
# The two floors need no model.
cads run configs/paper/matched-quota.yaml random prior --out "$out/floors-quota"
for model in "${models[@]}"; do
    cads serve "${weights[$model]}" --port "$port" >"$out/$model-server.log" 2>&1 &
    server=$!
    # The first start fetches the weights.
    until curl -sf "$url/health"; do
        kill -0 "$server" || { tail -20 "$out/$model-server.log"; exit 1; }
        sleep 5
    done
    given=(--agent-option "base_url=$url/v1")
    cads run configs/paper/llm.yaml "$model" "${given[@]}" --out "$out/$model"
    # The natural effect of a prompt, on the seeds of the matched quota.
    cads run configs/paper/llm.yaml "$model" "${given[@]}" --feedback full --seeds 20-69 \
        --out "$out/$model-natural"
    cads run configs/paper/matched-quota.yaml "$model" "${given[@]}" --out "$out/$model-quota"
    stop
    quotas+=("$out/$model-quota")
    cads report "$out/$model"
done
# All models at equal delivery, as one family of contrasts.
[ -e "$out/quota" ] ||
    cads merge "$out/floors-quota" "${quotas[@]}" --out "$out/quota"
cads report "$out/quota"
