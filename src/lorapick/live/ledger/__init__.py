"""The ledger on disk: one SQLite file per picker, written by a thread and read by anybody. Rows: `model.ledger`."""
