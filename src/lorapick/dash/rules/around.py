"""Alerts for what the picker needs of others: the API server, and whoever renews certificates.

In: nothing. Out: `Rule`s. Not here: all other rules (see `dash.rules.alerts`).
"""

from lorapick.dash.rules.rule import WARN, Rule
from lorapick.dash.rules.thresholds import number

KUBERNETES_DOWN, CERTIFICATE_ENDS = "kubernetes_down", "certificate_ends"
RENEWED = 7 * 86_400.0
"""Whoever renews certificates has done so by then: cert-manager at two thirds of the time, ACME clients at 30 days."""


def around() -> list[Rule]:
    """All of them."""
    left = "min by (server) (lorapick_tls_not_after_seconds) - time()"
    return [
        Rule(
            "LorapickKubernetesDown",
            KUBERNETES_DOWN,
            WARN,
            "min by (kind) (lorapick_kubernetes_up) < 1",
            120.0,
            "A picker does not hear of {{ $labels.kind }} from the API server",
            "Requests are served from what was known last: pods that came since get none, pods that left still do.",
        ),
        Rule(
            "LorapickCertificateEnds",
            CERTIFICATE_ENDS,
            WARN,
            f"{left} < {number(RENEWED)}",
            300.0,
            "The certificate of {{ $labels.server }} ends in {{ $value | humanizeDuration }}",
            "Whoever should have renewed it has not, or the picker cannot read the new files.",
        ),
    ]
