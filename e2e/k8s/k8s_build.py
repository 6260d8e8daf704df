"""Builds the programs that the Kubernetes tests start, from their Go modules, into a folder that git ignores.

Comes in: go.mod and go.sum beside this file (they pin the version of everything), a Go toolchain, the environment's
module proxy. Leaves: `.k8s/bin/{etcd,kube-apiserver,kubectl,helm}` at the root of the repository, and beside each the
stamp of what it was built from, so that the next call builds only what changed; `.k8s/published/NAME`, links to modules
that have the CRDs of others in them, which our files are compared with. Does NOT start anything.

A cold build takes 18 minutes of CPU, and 5 GB of modules and build cache in Go's own folders. All of it runs niced;
`GOFLAGS=-p=1` keeps it to one core.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).parent
BINARIES = HERE.parent.parent / ".k8s" / "bin"
PUBLISHED = BINARIES.parent / "published"
KUBERNETES = "v1.37.2"  # as in go.mod; a test compares


class Program(NamedTuple):
    """One program: its name, its Go package, and what the linker writes into it."""

    name: str
    package: str
    values: tuple[tuple[str, str], ...] = ()


# Release builds get their version from the linker; without it the API server calls itself v0.0.0-master.
VERSION = tuple(
    (f"{package}.{name}", value)
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    for name, value in (("gitVersion", KUBERNETES), ("gitMajor", "1"), ("gitMinor", KUBERNETES.split(".")[1]))
)
PROGRAMS = (
    Program("etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", VERSION),
    Program("kubectl", "k8s.io/kubernetes/cmd/kubectl", VERSION),
    Program("helm", "helm.sh/helm/v4/cmd/helm"),
)

MODULES = {
    "gateway-api": "sigs.k8s.io/gateway-api@v1.6.3",
    "inference-extension": "sigs.k8s.io/gateway-api-inference-extension@v1.5.0",
    "istio": "istio.io/api@v1.29.2",
}


def command(program: Program, target: pathlib.Path) -> list[str]:
    """Answer what builds `program` into `target`: without debug tables, which are half of its size."""
    flags = " ".join(("-s", "-w", *(f"-X {name}={value}" for name, value in program.values)))
    return ["nice", "-n", "19", "go", "build", "-trimpath", "-ldflags", flags, "-o", str(target), program.package]


def stamp(program: Program) -> str:
    """Answer the hash of everything that decides what `program` becomes: modules, command, toolchain."""
    parts = ((HERE / "go.mod").read_bytes(), (HERE / "go.sum").read_bytes(), repr(program).encode())
    version = subprocess.run(["go", "version"], capture_output=True, check=True).stdout
    return hashlib.sha256(b"\0".join((*parts, version))).hexdigest()


def build(program: Program) -> str:
    """Build `program` unless its stamp says that it is there; answer one line about it.

    Raises:
        SystemExit: the compiler refused; its words are on stderr.
    """
    target, mark, wanted = BINARIES / program.name, BINARIES / f"{program.name}.stamp", stamp(program)
    if target.exists() and mark.exists() and mark.read_text() == wanted:
        return f"{program.name}: built before"
    started, unfinished = time.monotonic(), target.with_suffix(".new")
    environment = {**os.environ, "CGO_ENABLED": "0"}
    if subprocess.run(command(program, unfinished), cwd=HERE, env=environment, check=False).returncode:
        sys.exit(f"{program.name}: not built from {program.package}; the compiler's words are above")
    unfinished.rename(target)
    mark.write_text(wanted)
    return f"{program.name}: built in {time.monotonic() - started:.0f} s ({target.stat().st_size / 1e6:.0f} MB)"


def publish(name: str, module: str) -> None:
    """Have the module's files under `.k8s/published/NAME`."""
    link = PUBLISHED / name
    if link.exists() and link.resolve().name == module.rpartition("/")[2]:
        return
    answer = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, check=True, cwd=HERE)
    link.unlink(missing_ok=True)
    link.symlink_to(json.loads(answer.stdout)["Dir"])


def main() -> None:
    """Build what is missing, one after the other."""
    if not shutil.which("go"):
        sys.exit("no Go toolchain: install Go 1.26 or newer, e.g. Debian's golang-go from backports")
    BINARIES.mkdir(parents=True, exist_ok=True)
    PUBLISHED.mkdir(exist_ok=True)
    for name, module in MODULES.items():
        publish(name, module)
    for program in PROGRAMS:
        print(f"building {program.name} ...", flush=True)
        print(build(program), flush=True)


if __name__ == "__main__":
    main()
