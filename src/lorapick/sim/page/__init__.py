"""One HTML page about a scenario's runs, with everything in it: no script, style or picture from elsewhere."""
