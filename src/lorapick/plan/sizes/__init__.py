"""How large an adapter is: from a base model and a rank, or from the files that PEFT saved."""
