"""What is built, under which names, and that every way to start it is the same program."""

import configparser
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

import agent_reach

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source distribution, built without a network."""
    target = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def dist_info(name):
    return f"agent_reach_runtime-{agent_reach.__version__}.dist-info/{name}"


def test_the_distribution_is_agent_reach_runtime(wheel):
    metadata = BytesParser().parsebytes(wheel.read(dist_info("METADATA")))
    assert metadata["Name"] == "agent-reach-runtime"
    assert metadata["Version"] == agent_reach.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"


def test_pyyaml_is_the_only_dependency_that_is_not_an_extra(wheel):
    metadata = BytesParser().parsebytes(wheel.read(dist_info("METADATA")))
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert [line.partition(">")[0].lower() for line in needed] == ["pyyaml"]


def test_the_wheel_holds_the_package_its_type_marker_and_the_licence_and_nothing_else(wheel):
    names = wheel.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "agent_reach",
        dist_info("").rstrip("/"),
    }
    assert "agent_reach/py.typed" in names
    assert dist_info("licenses/LICENSE") in names
    assert not [name for name in names if name.endswith(".pyc") or "tests" in name.split("/")]


def test_every_module_of_the_source_tree_is_in_the_wheel(wheel):
    source = PROJECT / "src"
    modules = {str(path.relative_to(source)) for path in (source / "agent_reach").rglob("*.py")}
    assert modules <= set(wheel.namelist())


def test_both_commands_start_the_same_function(wheel):
    scripts = configparser.ConfigParser()
    scripts.read_string(wheel.read(dist_info("entry_points.txt")).decode())
    assert dict(scripts["console_scripts"]) == {
        "reach": "agent_reach.cli:main",
        "agent-reach-runtime": "agent_reach.cli:main",
    }


def test_the_source_distribution_can_be_tested(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"dev", "LICENSE", "README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml"}
    wanted |= {"tests/conftest.py", "tests/allowed_skips.txt", "examples/sync_users/reach.yaml", "bench/cold.py"}
    assert wanted <= inside
    assert not [name for name in inside if name.startswith((".venv/", ".git/"))]


@pytest.mark.parametrize(
    "start",
    [
        [str(Path(sys.executable).with_name("reach"))],
        [str(Path(sys.executable).with_name("agent-reach-runtime"))],
        [sys.executable, "-m", "agent_reach"],
        [sys.executable, "-m", "agent_reach.cli"],
    ],
    ids=["reach", "agent-reach-runtime", "-m agent_reach", "-m agent_reach.cli"],
)
def test_every_way_to_start_it_tells_its_version(start, tmp_path):
    done = subprocess.run([*start, "version"], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert agent_reach.__version__ in done.stdout.splitlines()[0]
