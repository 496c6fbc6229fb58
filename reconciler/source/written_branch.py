"""A branch that headroom writes: one commit, on top of another branch or of none, replaced as a whole each time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reconciler.model.errors import Stalled
from reconciler.source.commands import CommandFailedError, Commands
from reconciler.source.credentials import parse_address
from reconciler.source.failures import stalled
from reconciler.source.git_options import GitOptions
from reconciler.source.remote import Remote

_PERSON = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "headroom"), ("EMAIL", "headroom@localhost"))
}
_GONE = f"0 {'0' * 40}"


@dataclass(frozen=True, slots=True)
class Folder:
    """The content of one folder of the branch. files: text by path inside it. keep: whether other files of the base stay there."""

    name: str
    files: Mapping[str, str]
    keep: Callable[[str], bool]


class WrittenBranch:
    """url: the repository's. branch: for headroom alone; anything else pushed there is lost."""

    def __init__(self, url: str, branch: str, options: GitOptions) -> None:
        self._address = parse_address(url)
        self._branch = branch
        self._options = options

    def write(self, folder: Folder, *, base: str, message: str) -> bool | None:
        """Writes the folder on top of the base. True: pushed. False: nothing had changed. None: it equals the base, so the branch
        was removed.

        Raises `Stalled` if the base does not exist or the push is refused.
        """
        with self._copy() as (remote, git, scratch):
            parent = remote.fetch(remote.head(f"refs/heads/{base}"))
            tree = _tree(git, parent, folder, scratch / "files")
            earlier = self._earlier(remote)
            if tree == git.line("rev-parse", f"{parent}^{{tree}}"):
                if earlier:
                    remote.push(self._branch, None, earlier=earlier)
                return None
            if earlier and _is(git, earlier, tree, parent, message):
                return False
            commit = git.line("commit-tree", tree, "-p", parent, "-m", message)
            remote.push(self._branch, commit, earlier=earlier)
            return True

    def replace(self, files: Mapping[str, bytes], *, message: str, is_current: Callable[[str], bool]) -> bool:
        """Replaces the branch by one commit without parents that has only these files. False: the branch has them already.

        is_current: gets the commit's message; whether a branch with the same files may stay as it is. It raises if the branch is
        somebody else's, so that nothing is written. Raises `Stalled` too.
        """
        with self._copy() as (remote, git, scratch):
            remote.prepare()
            names = sorted(files)
            objects = _stored(git, [files[name] for name in names], scratch / "files")
            listed = "".join(f"100644 blob {found}\t{name}\0" for name, found in zip(names, objects, strict=True))
            tree = git.run("mktree", "-z", feed=listed.encode()).decode().strip()
            earlier = self._earlier(remote)
            if earlier and is_current(_message(git, earlier)) and tree == git.line("rev-parse", f"{earlier}^{{tree}}"):
                return False
            remote.push(self._branch, git.line("commit-tree", tree, "-m", message), earlier=earlier)
            return True

    @contextmanager
    def _copy(self) -> Iterator[tuple[Remote, Commands, Path]]:
        """A copy of the remote for one write, git on it, and a folder for files."""
        scratch = Path(tempfile.mkdtemp(prefix="headroom-git-"))
        try:
            remote = Remote(
                self._address,
                scratch / "repository.git",
                credentials=self._options.credentials,
                timeout=self._options.timeout,
            )
            git = Commands(
                remote.folder,
                timeout=self._options.timeout.total_seconds(),
                environment={**_PERSON, "GIT_INDEX_FILE": str(scratch / "index")},
            )
            yield remote, git, scratch
        except CommandFailedError as error:
            raise stalled(error, self._address.shown, "write a branch of") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _earlier(self, remote: Remote) -> str:
        """The commit that the branch points to; "" if there is none."""
        try:
            head = remote.head(f"refs/heads/{self._branch}")
        except Stalled as failure:
            if "has no branch or tag" in failure.message:
                return ""
            raise
        return remote.fetch(head)


def _tree(git: Commands, parent: str, folder: Folder, scratch: Path) -> str:
    """The parent's tree with the folder's new contents."""
    git.run("read-tree", parent)
    listed = git.run("ls-tree", "-r", "-z", "--name-only", parent, "--", f"{folder.name}/").decode("utf-8", "replace")
    root = PurePosixPath(folder.name)
    lines = []
    for path in filter(None, listed.split("\0")):
        name = str(PurePosixPath(path).relative_to(root))
        if name not in folder.files and not folder.keep(name):
            lines.append(f"{_GONE}\t{path}")
    names = sorted(folder.files)
    objects = _stored(git, [folder.files[name].encode() for name in names], scratch)
    lines += [f"100644 {found}\t{root / name}" for name, found in zip(names, objects, strict=True)]
    git.run("update-index", "-z", "--index-info", feed="".join(f"{line}\0" for line in lines).encode())
    # The copy lacks the contents of unchanged files.
    return git.line("write-tree", "--missing-ok")


def _stored(git: Commands, contents: Sequence[bytes], scratch: Path) -> list[str]:
    """Stores the contents; returns the names of their objects. scratch: a folder that does not exist yet."""
    scratch.mkdir()
    for number, content in enumerate(contents):
        (scratch / str(number)).write_bytes(content)
    paths = "".join(f"{scratch / str(number)}\n" for number in range(len(contents)))
    return git.run("hash-object", "-w", "--no-filters", "--stdin-paths", feed=paths.encode()).decode().split()


def _message(git: Commands, commit: str) -> str:
    return git.run("cat-file", "commit", commit).decode("utf-8", "replace").partition("\n\n")[2]


def _is(git: Commands, commit: str, tree: str, parent: str, message: str) -> bool:
    """Whether the commit has this tree, parent and message. Read from the object itself, since a shallow copy hides parents."""
    head, _, said = git.run("cat-file", "commit", commit).decode("utf-8", "replace").partition("\n\n")
    return {f"tree {tree}", f"parent {parent}"} <= set(head.splitlines()) and said.strip() == message.strip()
