"""A plugin that asks callers for a token; whoever has it may do everything."""

from svc.plugins import ROOT_IDENTITY, PluginDescriptor, hookimpl
from svc_testing import TestingAuthMode

TOKEN = "bench"

PLUGIN = PluginDescriptor(
    id="auth.bench", version="1.0", summary="One token", api=(1, 1), implementation="auth_bench"
)


class BenchAuthMode(TestingAuthMode):
    """Asked once for each commit, as the modes that come with svc are."""

    asked_once_a_commit = True

    def bind(self, context):
        return BenchAuthMode(self.identity, self.tokens)


@hookimpl
def svc_register_auth_modes(auth_modes):
    """Adds the mode, which is called ``testing`` like that of the test kit."""
    auth_modes.add(BenchAuthMode(identity=None, tokens={TOKEN: ROOT_IDENTITY}))
