"""What several tests of commands are given."""

from pathlib import Path

import pytest

from tests.unit.cli.two_folders import Folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)
