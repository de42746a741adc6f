"""What goes wrong between the launcher and Kubernetes."""


class KubernetesError(Exception):
    """The cluster did not do as it was asked. The message is one sentence."""


class Unreachable(KubernetesError):
    """The API server does not answer, or cannot serve now; later it may."""


class Refused(KubernetesError):
    """The API server understood and refused: a missing right, a quota, a policy, a mistake."""


class ConfigurationError(Exception):
    """What the launcher was told about its workers makes no sense. One sentence."""
