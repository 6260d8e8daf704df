"""Plugin types around profiles: pickers, profile handlers, deciders.

In: nothing. Out: entries of the catalogue. Not here: filters and scorers (see `scheduling`).
"""

from lorapick.wire.config.epp.entries import always, differs, refused, same
from lorapick.wire.config.epp.reading import anything, members, only, parameters
from lorapick.wire.config.epp.reading import refused as no_such
from lorapick.wire.config.epp.selecting import header_name
from lorapick.wire.config.epp.values import Kind, PluginType
from lorapick.wire.config.readers import choice, integer, text

_MANY = 2**31 - 1
_picker = parameters({"maxNumOfEndpoints": ("endpoints", integer(least=0, most=_MANY))})
_pd_profiles = {
    "decodeProfile": ("decode", text),
    "prefillProfile": ("prefill", text),
    "deciderPluginName": ("decider", text),
}
HANDLING: tuple[PluginType, ...] = (
    same("max-score-picker", Kind.PICKER, does="picks the highest score, by chance among equals", read=_picker),
    same("random-picker", Kind.PICKER, does="picks by chance", read=_picker),
    same(
        "weighted-random-picker",
        Kind.PICKER,
        does="picks by chance, each pod as likely as its share of all scores",
        read=_picker,
    ),
    same("single-profile-handler", Kind.HANDLER, does="picks one pod, by the only profile"),
    same(
        "disagg-profile-handler",
        Kind.HANDLER,
        does="picks the pod that decodes, then one that prefills for it if the decider says so",
        read=parameters(
            {
                "profiles": (
                    "profiles",
                    lambda at: members(
                        at,
                        {
                            "decode": text,
                            "prefill": text,
                            "encode": text,
                            "fallback": no_such("a pod that decodes can prefill for itself"),
                        },
                    ),
                ),
                "deciders": (
                    "deciders",
                    lambda at: members(
                        at,
                        {"prefill": text, "encode": no_such("images are encoded where the prompt is prefilled")},
                    ),
                ),
                "stageOrder": (
                    "",
                    only(
                        choice("decode-first", "prefill-first"),
                        "decode-first",
                        because="whether somebody prefills depends on who decodes",
                    ),
                ),
            },
            {"profiles": {}, "deciders": {}},
        ),
    ),
    same(
        "pd-profile-handler",
        Kind.HANDLER,
        does="picks the pod that decodes, then one that prefills for it if the decider says so",
        read=parameters(
            _pd_profiles
            | {
                "threshold": ("characters", integer(least=0)),
                "prefixPluginType": ("", anything),
                "prefixPluginName": ("", anything),
                "hashBlockSize": ("", anything),
                "primaryPort": ("", no_such("list each rank as a pod of its own")),
            },
        ),
        old_name_of="disagg-profile-handler",
    ),
    always(
        "disagg-headers-handler",
        Kind.RESPONSE,
        does="lorapick always names the pod that prefills in x-prefiller-host-port",
        old_name_of="disagg-profile-handler",
    ),
    always(
        "prefill-header-handler",
        Kind.RESPONSE,
        does="lorapick always names the pod that prefills in x-prefiller-host-port",
        old_name_of="disagg-profile-handler",
    ),
    same(
        "prefix-based-pd-decider",
        Kind.DECIDER,
        does="prefills elsewhere from so many tokens on that the pod which decodes has not cached; 0: never",
        read=parameters(
            {"nonCachedTokens": ("tokens", integer(least=0)), "prefixMatchInfoProducerName": ("", anything)},
            {"tokens": 0},
        ),
    ),
    same("always-disagg-pd-decider", Kind.DECIDER, does="always prefills elsewhere"),
    refused(
        "always-disagg-multimodal-decider",
        Kind.DECIDER,
        because="lorapick has no choice of pods that encode",
        instead="disaggregation.pass_encoders, where somebody before lorapick chooses encoders",
    ),
    differs(
        "data-parallel-profile-handler",
        Kind.HANDLER,
        does="picks a rank by the only profile, and names it in x-data-parallel-host-port to the sidecar at the pod's "
        "primaryPort; without fallbacks, since another pod has no such rank",
        read=parameters({"primaryPort": ("port", integer(least=1, most=65_535))}, {"port": 8000}),
    ),
    differs(
        "header-profile-handler",
        Kind.HANDLER,
        does="picks by the profile that a header of the request names; one that names none that is there finds no pod: "
        "503 (llm-d: 429)",
        read=parameters(
            {"headerName": ("header", header_name), "defaultProfile": ("default", text)},
            {"header": "epp-profile", "default": "decode"},
        ),
    ),
)
