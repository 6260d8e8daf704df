"""The ledger's arithmetic: from events to rows, and from rows to what evictions cost.

Not here: files (`live.ledger`).
"""
