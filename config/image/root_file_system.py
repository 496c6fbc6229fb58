"""Lays out the image's root file system in a folder: Python, headroom and its dependencies, git, ssh, gpg, and what these load.

The Dockerfile runs it where the distribution's packages and headroom's virtual environment are installed:
`python root_file_system.py VIRTUAL_ENVIRONMENT FOLDER`. There is no package manager in the image, and no shell but the one through
which git starts ssh. Scanners find the Debian packages of what was copied in /var/lib/dpkg/status.d, as in distroless images.
"""

from __future__ import annotations

import compileall
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

PROGRAMS = ("git", "git-upload-pack", "git-receive-pack", "ssh", "ssh-keygen", "gpg", "sh")
TRANSPORTS = ("git-remote-http", "git-remote-https")
FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/openssl.cnf", "/etc/os-release", "/etc/ld.so.conf")
MERGED = ("bin", "lib", "lib64", "sbin")
BILL_OF_MATERIALS = "usr/share/sbom/headroom.cdx.json"
USER = 65532
WITHOUT = re.compile(
    r"(^|/)(__pycache__|tests?|include|docs?|examples|benchmarks)$|\.(a|h|pyi|pxd|pyx|lib|c|cpp|hpp)$"
    # What builds and installs packages, and what only they need.
    r"|^(pip|setuptools|_distutils_hack|hatchling|editables|pathspec|pluggy|packaging|tomlkit|trove_classifiers)(-|$)"
    # Of the Kubernetes client only the configuration and the transport are imported (docs/adr/0021).
    r"|^kubernetes/(aio|client/(api|models|apis)|dynamic|e2e_test|informer|leaderelection|stream|watch)$"
    r"|^(aiohappyeyeballs|aiohttp|aiohttp_retry|aiosignal|annotated_types|attrs?|frozenlist|multidict|propcache|pydantic|pydantic_core"
    r"|typing_inspection|websocket|websocket_client|yarl)(-|$)"
    r"|^numba/cuda$|^numpy/(f2py|_pyinstaller|_core/_simd.*\.so)$|^highspy/(lib|share|libhighs\.so\.\d+\..*)$"
)
"""What of the virtual environment's packages is never imported. The tests run the daemon inside the image."""
OF_PYTHON = re.compile(
    r"(^|/)(__pycache__|tests?)$|^(idlelib|ensurepip|tkinter|turtledemo|lib2to3|pydoc_data|venv|config-[^/]*"
    r"|site-packages|dist-packages|turtle\.py)$"
)


class RootFileSystem:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._copied: set[Path] = set()
        for name in MERGED:
            if Path("/", name).is_symlink():
                folder.joinpath("usr", name).mkdir(parents=True, exist_ok=True)
                folder.joinpath(name).symlink_to(f"usr/{name}")

    def add(self, path: Path) -> None:
        """A file, and what it leads to if it is a link, each in its own place."""
        path = path.parent.resolve() / path.name
        if path in self._copied or not path.exists():
            return
        self._copied.add(path)
        target = self.folder / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
        if path.is_symlink():
            self.add(path.parent / path.readlink())

    def add_tree(self, source: Path, without: re.Pattern[str]) -> None:
        for folder, names, files in os.walk(source):
            inside = Path(folder).relative_to(source)
            names[:] = [name for name in names if not without.search(str(inside / name))]
            for name in [*files, *(name for name in names if Path(folder, name).is_symlink())]:
                if not without.search(str(inside / name)):
                    self.add(Path(folder, name))

    def add_libraries(self) -> None:
        """What the programs and extension modules load at their start."""
        for binary in list(self.binaries()):
            listed = told("ldd", binary)
            for library in re.findall(r"(?:=> |^\t)(/\S+) \(0x", listed, re.MULTILINE):
                if not library.startswith(str(self.folder)):
                    self.add(Path(library))

    def binaries(self) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path

    def strip(self) -> None:
        for path in self.binaries():
            told("strip", "--strip-unneeded", path)

    def compile_modules(self) -> None:
        """Ahead, since nothing is written at run time; by their contents, so that no clock matters."""
        for folder in sorted(
            {path.parents[1] for path in self.folder.glob("**/site-packages")} | {self._standard_library()}
        ):
            compileall.compile_dir(
                folder,
                stripdir=str(self.folder),
                quiet=2,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )

    def _standard_library(self) -> Path:
        return self.folder / Path(sysconfig.get_path("stdlib")).relative_to("/")

    def add_accounts(self) -> None:
        for name, lines in {
            "passwd": [
                "root:x:0:0:root:/root:/sbin/nologin",
                f"headroom:x:{USER}:{USER}:headroom:/home/headroom:/sbin/nologin",
            ],
            "group": ["root:x:0:", f"headroom:x:{USER}:"],
            "nsswitch.conf": ["passwd: files", "group: files", "hosts: files dns"],
        }.items():
            self.folder.joinpath("etc", name).write_text("".join(f"{line}\n" for line in lines))
        for name in ("proc", "sys", "dev", "run", "root"):
            self.folder.joinpath(name).mkdir(exist_ok=True)
        self.folder.joinpath("tmp").mkdir()
        self.folder.joinpath("tmp").chmod(0o1777)

    def add_packages(self) -> None:
        """The control data and the licence of each Debian package that a copied file is from."""
        status = self.folder / "var/lib/dpkg/status.d"
        status.mkdir(parents=True)
        for package in sorted(_owners(self._copied)):
            status.joinpath(package.partition(":")[0]).write_text(told("dpkg-query", "--status", package))
            licence = Path("usr/share/doc", package.partition(":")[0], "copyright")
            self.folder.joinpath(licence).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(
                Path("/", licence), self.folder / licence
            )  # whose folder may be a link to another package's


def told(*words: str | Path) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def _owners(paths: Iterable[Path]) -> set[str]:
    found = told("dpkg-query", "--search", *paths).splitlines()  # which fails for those that are from none
    return {name for line in found if ": /" in line for name in line.partition(": /")[0].split(", ")}


def write_bill_of_materials(root: Path, environment: Path) -> None:
    """Of what was laid out, in CycloneDX's format: the Python packages as its own tool finds them, and the Debian packages."""
    python = root / environment.relative_to("/")
    command = [
        "/opt/tools/bin/cyclonedx-py",
        "environment",
        "--pyproject=pyproject.toml",
        "--output-reproducible",
        python,
    ]
    bill = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for status in sorted(root.glob("var/lib/dpkg/status.d/*")):
        fields = dict(re.findall(r"^(Version|Architecture): (\S+)$", status.read_text(), re.MULTILINE))
        reference = f"pkg:deb/debian/{status.name}@{quote(fields['Version'])}?arch={fields['Architecture']}"
        component = {"type": "library", "name": status.name, "version": fields["Version"], "purl": reference}
        bill["components"].append({"bom-ref": reference, **component})
    (root / BILL_OF_MATERIALS).parent.mkdir()
    (root / BILL_OF_MATERIALS).write_text(json.dumps(bill, indent=2))


def main(environment: Path, folder: Path) -> None:
    root = RootFileSystem(folder)
    for name in PROGRAMS:
        found = shutil.which(name)
        if found is None:
            sys.exit(f"{name} is not installed")
        root.add(Path(found))
    for name in TRANSPORTS:
        root.add(Path(told("git", "--exec-path").strip(), name))
    for name in FILES:
        root.add(Path(name))
    for path in Path("/etc/ld.so.conf.d").glob("*.conf"):
        root.add(path)
    root.add_tree(Path(sysconfig.get_path("stdlib")), OF_PYTHON)
    root.add(environment / "pyvenv.cfg")
    for name in ("headroom", "python"):
        root.add(environment / "bin" / name)
    (packages,) = environment.glob("lib/python3.*/site-packages")
    root.add_tree(packages, WITHOUT)
    root.add_libraries()
    root.strip()
    root.compile_modules()
    root.add_accounts()
    root.add_packages()
    told("ldconfig", "-r", folder)
    write_bill_of_materials(folder, environment)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
