"""What is where on each pod, since when, and how we know."""
