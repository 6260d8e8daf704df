"""Agreement with other pickers of the fleet through a store that speaks Redis' protocol (docs/peers.md)."""
