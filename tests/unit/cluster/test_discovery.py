"""What an API server serves, while one of its two lists cannot be read."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from reconciler.cluster.discovery import Discovery
from reconciler.cluster.resources import CAPACITY_BUFFERS
from reconciler.cluster.scales import Scales
from reconciler.cluster.view import ViewStore
from reconciler.model.errors import Transient
from reconciler.model.refs import ObjectRef
from tests.builders import manifest
from tests.unit.cluster.scripted_server import Reply, Script, serving, status


def kinds(group: str, *names: str) -> Reply:
    resources = [{"resource": f"{name.lower()}s", "responseKind": {"kind": name}} for name in names]
    groups = [{"metadata": {"name": group}, "versions": [{"version": "v1", "resources": resources}]}]
    return Reply(body={"kind": "APIGroupDiscoveryList", "items": groups}, headers={"ETag": "one"})


def test_what_was_learnt_before_the_other_list_failed_is_not_lost() -> None:
    replies = [
        kinds("", "Pod"),
        kinds("apps", "Job"),
        kinds("", "Pod", "Node"),
        status(503),
        Reply(304, b""),
        Reply(304, b""),
    ]
    with serving(Script(replies)) as connection:
        discovery = Discovery(connection)
        assert discovery.refresh()
        with pytest.raises(Transient):
            discovery.refresh()
        assert discovery.refresh()
        assert discovery.find("", "Node") is not None
        assert not discovery.refresh()
        assert discovery.generation == 2


@pytest.mark.parametrize("name", ["../../../api/v1/pods?watch=true&x=", "a/b", "a#b", "a%2Fb"])
def test_the_name_of_an_object_is_one_step_of_its_path(name: str) -> None:
    """A buffer that somebody makes in the cluster may name anything: headroom would watch all pods without end."""
    script = Script([kinds("x.example", "Thing"), kinds("x.example", "Thing"), status(404)])
    with serving(script) as connection:
        discovery = Discovery(connection)
        discovery.refresh()
        path = discovery.object_path(ObjectRef("x.example", "Thing", "shop", name))
        connection.request("GET", f"{path}/scale")
    above, name_asked, below = script.asked[-1].rsplit("/", 2)
    assert (above, unquote(name_asked), below) == ("/apis/x.example/v1/namespaces/shop/things", name, "scale")


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_is_no_step_of_a_path_is_that_of_no_object(name: str) -> None:
    """Its buffer is not ready, and no gap in what could be read, which would stop all deletions."""
    things = kinds("x.example", "Thing")
    resource = things.body["items"][0]["versions"][0]["resources"][0]
    resource |= {"scope": "Namespaced", "subresources": [{"subresource": "scale"}]}
    target = {"apiGroup": "x.example", "kind": "Thing", "name": name}
    buffer = manifest("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "web", "shop")
    store = ViewStore()
    store.put(CAPACITY_BUFFERS, {**buffer, "spec": {"scalableRef": target, "replicas": 1}})
    script = Script([things, things])
    with serving(script) as connection:
        discovery = Discovery(connection)
        discovery.refresh()
        Scales(connection, discovery, store).refresh()
    assert (store.view().gaps, len(script.asked)) == ((), 2)
