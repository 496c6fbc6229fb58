"""Chromium, and pages as they stand in it. One is started for all pages: its start takes ten times as long as a page.

It is told what to do over a pipe, in the DevTools protocol.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import pytest

from tests.programs import program

_PATIENCE = 120.0
_CODES = {"Tab": 9, "Enter": 13}
# Commands are read from descriptor 3, and answers are written to 4.
_WITH_PIPES = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'


class Tab:
    """One page. call: sends it a command of the DevTools protocol, and returns the answer."""

    def __init__(self, call: Callable[..., dict[str, Any]]) -> None:
        self._call = call

    def look(
        self,
        *,
        width: int = 800,
        height: int = 600,
        dark: bool = False,
        zone: str = "UTC",
        script: bool = True,
        now: datetime | None = None,
    ) -> None:
        """How its viewer looks at it. zone: the viewer's time zone. script: whether the page may run scripts. now: what its clock says."""
        if now is not None:
            stopped = f"Date.now = () => {now.timestamp() * 1000:.0f}"
            self._call("Page.addScriptToEvaluateOnNewDocument", source=stopped)
        scale = 2 if width < 600 else 1
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Emulation.setScrollbarsHidden", hidden=True)
        self._call("Emulation.setTimezoneOverride", timezoneId=zone)
        self._call("Emulation.setScriptExecutionDisabled", value=not script)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives; a promise is waited for."""
        said = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def seconds(self) -> float:
        """Of CPU, that the page's process has spent."""
        self._call("Performance.enable")
        found = {item["name"]: float(item["value"]) for item in self._call("Performance.getMetrics")["metrics"]}
        return found["ProcessTime"]

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_CODES[key])

    def picture(self, *, height: int | None = None) -> bytes:
        """The whole page as PNG, or its first `height` pixels."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
        return b64decode(self._call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])


class Browser:
    def __init__(self, folder: Path) -> None:
        chromium = program("chromium", "chromium-browser", "google-chrome", install="Chromium")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            ["sh", "-c", _WITH_PIPES, "sh", *command, f"--user-data-dir={folder}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._calls = 0
        self._begun = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._call("Browser.close")
        self._process.communicate(timeout=_PATIENCE)

    def page(self, path: Path) -> str:
        """The file as it stands when it has loaded and its scripts have run. It has a profile of its own."""
        with self.opened(path.as_uri()) as tab:
            return str(tab.value("document.documentElement.outerHTML"))

    @contextmanager
    def opened(self, address: str, **look: Any) -> Iterator[Tab]:
        """The page at an address, loaded, in a profile of its own. look: as for `Tab.look`."""
        profile = self._call("Target.createBrowserContext")["browserContextId"]
        target = self._call("Target.createTarget", url="about:blank", browserContextId=profile)["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable", session)
        self._call("Page.setLifecycleEventsEnabled", session, enabled=True)
        tab = Tab(lambda method, **parameters: self._call(method, session, **parameters))
        tab.look(**look)
        self._load(address, session)
        yield tab
        self._call("Target.disposeBrowserContext", browserContextId=profile)

    def _load(self, address: str, session: str) -> None:
        """Returns when this page has loaded, whatever is told of the one before it."""
        number = self._send("Page.navigate", session, url=address)
        wanted, loaded = None, set()
        while wanted is None or wanted not in loaded:
            said = self._next()
            if said.get("id") == number:
                assert "errorText" not in said["result"], said
                wanted = said["result"]["loaderId"]
            elif said.get("method") == "Page.lifecycleEvent" and said["params"]["name"] == "load":
                loaded.add(said["params"]["loaderId"])

    def _call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """What is answered. Events that come before it are dropped."""
        number = self._send(method, session, **parameters)
        while (said := self._next()).get("id") != number:
            pass
        assert "error" not in said, said
        answer: dict[str, Any] = said["result"]
        return answer

    def _send(self, method: str, session: str, **parameters: Any) -> int:
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters}
        text = json.dumps(message | ({"sessionId": session} if session else {}))
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\0")
        return self._calls

    def _next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\0" not in self._begun:
            ready, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
            more = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            assert more, "Chromium says nothing"
            self._begun += more
        text, _, self._begun = self._begun.partition(b"\0")
        said: dict[str, Any] = json.loads(text)
        return said


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser
