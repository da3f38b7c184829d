"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, StartOption, SystemPath
from svc_auth_magic_link.configuration import MagicLinkSettings, check_authorities

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.magic-link",
    version="0.1.0",
    summary="Sign-in by a link that is mailed",
    api=(1, 1),
    configuration=MagicLinkSettings,
    implementation="svc_auth_magic_link.plugin",
    adds={
        "health_checks": ("svc_auth_magic_link.health:MagicLinkCheck",),
        "jobs": ("svc_auth_magic_link.codes:PruningJob",),
        "portal:sign_ins": (
            "svc_auth_magic_link.portal.sign_in:AskForLink",
            "svc_auth_magic_link.portal.sign_in:UseLink",
        ),
    },
    operations=("svc_auth_magic_link.operations",),
    needs=("auth.self", "users"),
    options=(
        StartOption(
            "magic-link-url-template",
            "Links that sign in, with {code} in them.",
            setting="url_template",
            metavar="URL",
        ),
        StartOption(
            "magic-link-base-url",
            "Where this server is reached, for links that sign in.",
            setting="base_url",
            metavar="URL",
        ),
        StartOption(
            "log-magic-links",
            "Whether links that sign in go to the log and not into a mail.",
            setting="log_links",
            metavar="BOOL",
        ),
        StartOption("smtp-host", "The server that takes mail.", metavar="HOST"),
        StartOption("smtp-port", "Its port; 0 for the usual one.", metavar="N"),
        StartOption("smtp-security", "How it is spoken to.", metavar="starttls|tls|none"),
        StartOption(
            "smtp-ca",
            "Authorities in PEM that vouch for it; default: the system's.",
            metavar="FILE",
            check=check_authorities,
        ),
        StartOption("smtp-user", "Name to sign in there with.", metavar="NAME"),
        StartOption("smtp-password", "Password of that name.", secret=True),
        StartOption("smtp-from", "Sender of the mail.", metavar="ADDRESS"),
    ),
    system_paths=(SystemPath("magic-links", BackupRule.SECRET),),
)
