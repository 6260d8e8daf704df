"""Whether a rollout of adapters may go out: predicted, judged by rules, with the cheapest change that would pass."""
