"""Makes a random chat model of 0.4 million weights: `python tiny_random.py FOLDER < words.json`.

Half of its vocabulary are names, so that what it says can be read as proposals. Run by a server's
Python, which has torch and transformers; knows nothing of this package.
"""

from __future__ import annotations

import json
import sys

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

END = "<|im_end|>"
PAD = "<|endoftext|>"
START = "<|im_start|>"
SENTENCES = [
    "You choose genes for a screen. Answer with a list of names, separated by commas.",
    "A candidate reads high when its mean read is above the threshold. Tested so far: none.",
    "Propose 40 candidates that were not tested before. Round 1 of 12.",
]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    """Bytes, a few pairs of letters, and each word with its comma."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=460,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([*SENTENCES, *words], trainer)
    made.add_tokens([AddedToken(f" {word},", normalized=False) for word in words])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=END, pad_token=PAD, additional_special_tokens=[START]
    )
    fast.chat_template = TEMPLATE
    return fast


def main(folder: str) -> None:
    """Write model and tokenizer."""
    fast = tokenizer(json.load(sys.stdin))
    size = (len(fast) + 63) // 64 * 64
    config = Qwen2Config(
        vocab_size=size,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16_384,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(config).to(torch.bfloat16)
    model.generation_config = GenerationConfig(
        eos_token_id=fast.eos_token_id, pad_token_id=fast.pad_token_id
    )
    model.save_pretrained(folder)
    fast.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
