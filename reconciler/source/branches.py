"""Branches that headroom writes itself, and reads again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reconciler.model.errors import Invalid, Stalled
from reconciler.source.commands import OPERATION_FAILED, CommandFailedError, Commands, new_objects_in, person, stalled
from reconciler.source.credentials import Address, Authorization, GitOptions, authorize, parse_address
from reconciler.source.objects import contents_of
from reconciler.source.opening import is_remote
from reconciler.source.remote import Remote
from reconciler.source.revision import find_repository

_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")


@dataclass(frozen=True, slots=True)
class BranchFiles:
    """files: those at the root of the branch, by name; folders are not read. message: its commit's."""

    message: str
    files: Mapping[str, bytes]


def read_branch(repository: str, branch: str, options: GitOptions, *, most_bytes: int) -> BranchFiles | None:
    """The branch; None if there is no such branch, or no repository. most_bytes: of all files; a larger branch is refused.

    For a clone its remote `origin` is read, with the clone's own credentials. If that is impossible, the last fetched state counts.
    Nothing in the clone is changed. Raises `Stalled` if the remote cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="headroom-git-") as scratch:
        try:
            if not Path(repository).is_dir() and is_remote(repository):
                return _of_url(repository, branch, options, Path(scratch), most_bytes)
            return _of_clone(Path(repository), branch, options, Path(scratch), most_bytes)
        except CommandFailedError as error:
            raise stalled(error, repository, "read a branch of") from error


def _of_url(url: str, branch: str, options: GitOptions, scratch: Path, most_bytes: int) -> BranchFiles | None:
    remote = Remote(parse_address(url), scratch / "repository.git", options)
    head = remote.branch(branch)
    if head is None:
        return None
    commit = remote.fetch(head)
    absent = remote.absent(commit)
    if absent:
        remote.fetch_objects(absent)
    return _read(remote.local(), commit, branch, most_bytes)


def _of_clone(path: Path, branch: str, options: GitOptions, scratch: Path, most_bytes: int) -> BranchFiles | None:
    try:
        git_dir, _ = find_repository(path)
    except (Invalid, Stalled):
        return None
    plain = Commands(git_dir, timeout=options.seconds)
    environment = new_objects_in(scratch, plain)
    url = plain.line_if_any("config", "--get", "remote.origin.url")
    authorization = _authorization(url, options)
    git = Commands(
        git_dir,
        timeout=options.seconds,
        environment={**environment, **authorization.environment},
        config=authorization.config,
        secrets=authorization.secrets,
        network=True,
    )
    commit = _fetched(git, branch) if url else ""
    commit = commit or plain.line_if_any("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    return _read(git, commit, branch, most_bytes) if commit else None


def _authorization(url: str, options: GitOptions) -> Authorization:
    """A token from the settings; otherwise the clone's own credentials, such as those that a CI job puts into it."""
    address = Address(parse_address(url).url) if url and is_remote(url) else None
    return authorize(address, options) if address is not None and address.is_http else Authorization({})


def _fetched(git: Commands, branch: str) -> str:
    """The branch's commit at origin, "" for none. If origin cannot be reached, the last known one."""
    try:
        commit = git.line("ls-remote", "--refs", "origin", f"refs/heads/{branch}").partition("\t")[0]
        if commit and not git.line_if_any("cat-file", "-t", f"{commit}^{{tree}}"):
            # Fetched by name, without updating any reference: a clone's references belong to its owner.
            git.run("fetch", *_FETCH, "--refmap=", "origin", commit)
    except CommandFailedError:
        commit = git.line_if_any("rev-parse", "--verify", "--quiet", f"refs/remotes/origin/{branch}^{{commit}}")
        if not commit:
            raise
    return commit


def _read(git: Commands, commit: str, branch: str, most_bytes: int) -> BranchFiles:
    objects: dict[str, tuple[str, int]] = {}
    for line in git.run("ls-tree", "-l", "-z", commit).decode("utf-8", "replace").split("\0"):
        facts, _, name = line.partition("\t")
        if " blob " in facts:
            _, _, found, size = facts.split()
            objects[name] = (found, int(size))
    if sum(size for _, size in objects.values()) > most_bytes:
        raise Stalled(f"branch {branch!r} has files of more than {most_bytes // 2**20} MiB", reason=OPERATION_FAILED)
    contents = contents_of(git, [found for found, _ in objects.values()])
    files = dict(zip(objects, contents, strict=True))
    return BranchFiles(_message(git, commit), files)


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

    def write(self, folder: Folder, *, base: str, message: str, withdraw: Callable[[], None]) -> bool | None:
        """Writes the folder on top of the base. True: pushed. False: nothing had changed. None: it equals the base, so the branch
        was removed. withdraw: called before that, since a forge closes a pull request when its branch goes.

        Raises `Stalled` if the base does not exist or the push is refused.
        """
        with self._copy() as (remote, git, scratch):
            parent = remote.fetch(remote.head(f"refs/heads/{base}"))
            tree = _tree(git, parent, folder, scratch / "files")
            earlier = self._earlier(remote)
            if tree == git.line("rev-parse", f"{parent}^{{tree}}"):
                withdraw()
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
            remote.prepare(remote.folder)
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
            remote = Remote(self._address, scratch / "repository.git", self._options)
            git = Commands(
                remote.folder,
                timeout=self._options.seconds,
                environment={**person(), "GIT_INDEX_FILE": str(scratch / "index")},
            )
            yield remote, git, scratch
        except CommandFailedError as error:
            raise stalled(error, self._address.shown, "write a branch of") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _earlier(self, remote: Remote) -> str:
        """The commit that the branch points to; "" if there is none."""
        head = remote.branch(self._branch)
        return "" if head is None else remote.fetch(head)


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
