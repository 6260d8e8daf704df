"""What people look at: the live page, rules and boards for Prometheus and Grafana, runbooks. Never decides anything."""
