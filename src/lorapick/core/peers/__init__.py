"""Several pickers of one fleet: what others say, and who loads what nobody has."""
