"""Every policy over every kind of traffic, at loads from light to nearly full: which is first, and where."""
