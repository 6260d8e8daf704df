"""What shows thrash as thrash: rates, residencies, latencies, useful time, over sliding windows."""
