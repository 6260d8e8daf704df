"""A random Llama of 2.4 million parameters, a tokenizer and six LoRA adapters: `python make_model.py DIRECTORY`.

In: a directory. Out: in it `base/` (2 layers, hidden 256, tokenizer with chat template) and `ad0/` to `ad5/` (PEFT;
ranks 4, 8, 16, 4, 8, 16; A and B from N(0, 0.3), so that greedy answers differ). The same seed, the same weights.
Not here: anything learnt. Runs in `.venv-vllm`, needs no network.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

RANKS = (4, 8, 16, 4, 8, 16)
HIDDEN, LAYERS, HEADS, VOCABULARY = 256, 2, 4, 2048
_CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE, trained on the text of Python's own library."""
    special = ["<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - 8, special_tokens=special, initial_alphabet=alphabet)
    modules = ("argparse", "asyncio", "collections", "json", "pathlib", "statistics", "subprocess", "typing")
    texts = [__import__(name).__doc__ or "" for name in modules]
    texts += [Path(__import__(name).__file__).read_text() for name in modules]
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<|begin|>", eos_token="<|end|>", pad_token="<|end|>", chat_template=_CHAT
    )


def base(directory: Path) -> None:
    """Write the model; a wide spread of weights makes its greedy answers vary."""
    words = tokenizer()
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=1024,
        initializer_range=0.2,
        tie_word_embeddings=True,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(directory)
    words.save_pretrained(directory)


def adapter(directory: Path, *, rank: int, seed: int, base_model: Path) -> None:
    """Write one adapter, as PEFT would."""
    draw = torch.Generator().manual_seed(seed)
    weights = {}
    for layer in range(LAYERS):
        for target in ("q_proj", "v_proj"):
            key = f"base_model.model.model.layers.{layer}.self_attn.{target}"
            for side, shape in (("lora_A", (rank, HIDDEN)), ("lora_B", (HIDDEN, rank))):
                values = torch.randn(shape, generator=draw) * 0.3
                weights[f"{key}.{side}.weight"] = values.to(torch.bfloat16).contiguous()
    directory.mkdir()
    save_file(weights, directory / "adapter_model.safetensors")
    facts = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(base_model),
        "r": rank,
        "lora_alpha": rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": ["q_proj", "v_proj"],
    }
    (directory / "adapter_config.json").write_text(json.dumps(facts, indent=1))


def main() -> None:
    """Make all of it, in a directory that is not there yet."""
    root = Path(sys.argv[1]).absolute()
    root.mkdir(parents=True)
    base(root / "base")
    for number, rank in enumerate(RANKS):
        adapter(root / f"ad{number}", rank=rank, seed=number + 1, base_model=root / "base")
    print(f"a model and {len(RANKS)} adapters are in {root}")


if __name__ == "__main__":
    main()
