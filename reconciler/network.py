"""The way to an address: whether others can listen there, and which proxy of the environment is to be asked."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from reconciler.model.errors import Invalid

if TYPE_CHECKING:
    from urllib.request import OpenerDirector


def is_this_machine(host: str) -> bool:
    """Whether a host's name or address is that of the machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_open_to_listeners(url: str) -> bool:
    """Whether what is sent there, such as a token, crosses a network without encryption."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_this_machine(parts.hostname or "")


def proxy_of(url: str) -> str:
    """The proxy that is to be asked for an address; "" for none, as where NO_PROXY names the host, and for this machine itself. Raises as
    `usable_proxy`."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies()
    named = f"{host}:{parts.port}" if parts.port else host
    if is_this_machine(host) or proxy_bypass(named) or _is_within(proxies.get("no", ""), host):
        return ""
    return usable_proxy(proxies.get(parts.scheme) or proxies.get("all", ""))


def _is_within(networks: str, host: str) -> bool:
    """Whether an address is in one of the networks of NO_PROXY, such as 10.0.0.0/8. Python knows only names and addresses there, but Go, and
    so every other program of a cluster, networks too."""
    for network in networks.split(","):
        with suppress(ValueError):
            if "/" in network and ip_address(host) in ip_network(network.strip(), strict=False):
                return True
    return False


def usable_proxy(written: str) -> str:
    """A proxy with its scheme, which is http where none is written. Raises `Invalid` for one that is not of HTTP."""
    proxy = f"http://{written}" if written and "://" not in written else written
    kind = proxy.partition("://")[0].lower()
    if kind not in {"", "http", "https"}:
        raise Invalid(
            f"proxies of {kind}:// are not supported", hint="name one of http://, or add the host to NO_PROXY"
        )
    return proxy


def proxy_headers(proxy: str) -> Mapping[str, str]:
    """The headers by which a proxy's user signs in: urllib3 takes none from its address."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"}


def opener_to(url: str) -> OpenerDirector:
    """Opens an address, by the environment's proxy unless that is not to be asked."""
    from urllib.request import ProxyHandler, build_opener

    return build_opener(ProxyHandler({urlsplit(url).scheme: proxy} if (proxy := proxy_of(url)) else {}))
