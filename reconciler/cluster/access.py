"""How an API server is reached: authentication and TLS by the `kubernetes` package, without its models.

Its configuration (kubeconfig, exec plugins, OpenID Connect, service account tokens) is used as it is; docs/adr/0021 says what is not.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import Any

from reconciler.model.errors import Invalid, Transient
from reconciler.network import proxy_headers, proxy_of, usable_proxy

_PLUGIN_SECONDS = 3.0
_KEEP_ALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""With these a vanished peer is noticed after half a minute, not after hours, the kernel's default."""
_IMPORTING = Lock()
"""Several clusters are opened at once, and no thread may see the package half entered."""
_POOL_SIZE = 64  # each watch holds a connection
_NOISE = re.compile(r"^\[Errno -?\d+\] |^_ssl\.c:\d+: |^\[(SSL|X509)[^\]]*\] | \(_ssl\.c:\d+\)$")
"""Numbers of the operating system and places in Python's own source."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one API server. pool: a urllib3 PoolManager with its TLS. authorization: makes the headers of each call."""

    host: str
    pool: Any
    authorization: Callable[[], Mapping[str, str]]


def kubeconfig_access(context: str | None = None, path: str | None = None) -> Access:
    """The context of a kubeconfig (KUBECONFIG or ~/.kube/config by default).

    Raises `Invalid`, and `Transient` where an identity provider that it names does not answer.
    """
    kubernetes = _kubernetes()
    configuration, location = _configuration(kubernetes), kubeconfig_location(path)
    try:
        kubernetes.config.load_kube_config(
            location, context=context, client_configuration=configuration, persist_config=False
        )
    except _network_errors() as error:
        raise Transient(lost(f"the identity provider in the kubeconfig {location}", error)) from error
    except Exception as error:  # the package raises whatever it meets: of a file, of a plugin, or a provider's refusal
        raise _unusable(location, error) from error
    return _access(configuration)


def in_cluster_access() -> Access:
    """The service account of the pod that headroom runs in. Raises `Invalid`."""
    kubernetes = _kubernetes()
    configuration = _configuration(kubernetes)
    try:
        kubernetes.config.load_incluster_config(client_configuration=configuration)
    except (kubernetes.config.ConfigException, OSError, ValueError) as error:
        raise Invalid(f"not inside a cluster: {error}", hint="use --cluster kubeconfig[:CONTEXT]") from error
    return _access(configuration)


def current_context(path: str | None = None) -> str | None:
    """The name of the kubeconfig's current context; None if there is none. Raises `Invalid` for a file that is not YAML."""
    config, location = _kubernetes().config, kubeconfig_location(path)
    try:
        _, context = config.list_kube_config_contexts(location)
    except (config.ConfigException, OSError, TypeError, ValueError, KeyError, AttributeError):
        return None
    except Exception as error:  # as above: YAML that is none, say
        raise _unusable(location, error) from error
    return str(context["name"]) if context else None


def kubeconfig_location(path: str | None = None) -> str:
    """Where the kubeconfig is, or would be."""
    return path or os.environ.get("KUBECONFIG") or "~/.kube/config"


def _unusable(location: str, error: Exception) -> Invalid:
    return Invalid(
        f"the kubeconfig {location} cannot be used: {' '.join(str(error).split())}",
        hint="check it with `kubectl config view`, or name another with KUBECONFIG",
    )


def _kubernetes() -> Any:
    """The package, which has no types, with its configuration alone."""
    with _IMPORTING:
        _spare_the_models()
        import kubernetes.config
    return kubernetes


def lost(host: str, error: BaseException) -> str:
    """The message of a lost connection, in one line and without the client's object addresses."""
    import urllib3

    reason: BaseException = error
    timed_out = False
    while True:
        timed_out = timed_out or isinstance(reason, urllib3.exceptions.ReadTimeoutError)
        inner = getattr(reason, "reason", None) or reason.__cause__ or next(iter(reason.args), None)
        if not isinstance(inner, BaseException):
            break
        reason = inner
    text = _NOISE.sub("", " ".join(str(reason).rpartition(">: ")[2].split())) or type(reason).__name__
    if timed_out or "handshake operation timed out" in text:
        return f"{host} accepts connections but does not answer"
    return f"{host} does not answer: {text}"


def authorized(access: Access) -> Mapping[str, str]:
    """The headers that tell who asks. Raises `Transient`: they are made anew, and what fails now may be there at the next call."""
    try:
        return access.authorization()
    except Exception as error:
        # A token file may be gone or empty, a process may have too many files open, a plugin may fail: the package catches none of it.
        reason = _NOISE.sub("", str(error)) or type(error).__name__
        raise Transient(f"the credentials for {access.host} cannot be read: {reason}") from error


def _network_errors() -> tuple[type[Exception], ...]:
    """What asking an identity provider may raise. These packages are only loaded where something has failed. `requests` is a dependency of
    the Kubernetes package, which has loaded it where it asks by it."""
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    requests = sys.modules.get("requests")
    return (ApiException, HTTPError) if requests is None else (ApiException, HTTPError, requests.RequestException)


def _spare_the_models() -> None:
    """Enters `kubernetes` and `kubernetes.client` without what their first lines import: some 1,500 model classes and calls. With those the
    import takes twice as long, and 11 MB more. Where the whole package is loaded already, nothing is done."""
    if "kubernetes" in sys.modules:
        return
    found = importlib.util.find_spec("kubernetes")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'kubernetes'", name="kubernetes")
    package, client = ModuleType("kubernetes"), ModuleType("kubernetes.client")
    folder = Path(found.origin).parent
    package.__path__, client.__path__ = [str(folder)], [str(folder / "client")]
    sys.modules.update({"kubernetes": package, "kubernetes.client": client})
    from kubernetes.client.configuration import Configuration
    from kubernetes.client.rest import RESTClientObject

    def api_client(configuration: Any) -> Any:
        """All that kubernetes.config asks of its own: a GET, where a token of OpenID Connect has expired."""
        return SimpleNamespace(call_api=RESTClientObject(configuration).request)

    vars(package).update(client=client)
    vars(client).update(Configuration=Configuration, ApiClient=api_client)


def _configuration(kubernetes: Any) -> Any:
    """A configuration without the environment's proxy, which the package would also ask for this machine itself."""
    return kubernetes.client.Configuration(proxy="")


def _access(configuration: Any) -> Access:
    from kubernetes.client.rest import RESTClientObject

    # The environment's proxy counts where the kubeconfig names none. Of one that the kubeconfig names the package judges by NO_PROXY.
    configuration.proxy = usable_proxy(configuration.proxy) or proxy_of(configuration.host)
    configuration.proxy_headers = proxy_headers(configuration.proxy)
    configuration.connection_pool_maxsize = _POOL_SIZE
    configuration.socket_options = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        *((socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _KEEP_ALIVE if hasattr(socket, name)),
    ]
    pool = RESTClientObject(configuration).pool_manager

    asking, last = Lock(), dict[str, str]()

    def authorization() -> Mapping[str, str]:
        nonlocal last
        # Where a token has expired, one thread runs the plugin that has a new one. The others wait, but no longer than the Lease can.
        if not asking.acquire(timeout=_PLUGIN_SECONDS):
            return last
        try:
            # A token that somebody has written by hand may end with a line feed.
            headers = {setting["key"]: setting["value"].strip() for setting in configuration.auth_settings().values()}
        finally:
            asking.release()
        if not headers and configuration.username:
            headers["authorization"] = configuration.get_basic_auth_token()
        last = headers
        return headers

    return Access(configuration.host.rstrip("/"), pool, authorization)
