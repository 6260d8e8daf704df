"""Send each request to where its LoRA adapter is, and keep adapters where requests want them."""

__version__ = "0.1.0"
