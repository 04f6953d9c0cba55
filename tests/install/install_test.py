#!/usr/bin/env python3
"""Installs a build tree and uses it from outside, as its users would; see CMakeLists.txt."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile


def run(command, **options):
    print("$", " ".join(map(str, command)), flush=True)
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, **options)
    print(done.stdout + done.stderr, flush=True)
    if done.returncode != 0:
        sys.exit(f"failed with {done.returncode}: {command[0]}")
    return done.stdout


def require(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


class Consumer:
    """Builds outside projects against <prefix> and runs what they make."""

    def __init__(self, arguments, prefix, work):
        self.arguments = arguments
        self.prefix = prefix
        self.work = work
        self.environment = dict(os.environ, CUBIST_STORE=str(self.work / "store"),
                                CUBIST_LIBCUDA=arguments.libcuda)
        self.environment.pop("CUBIST_MANIFESTS", None)

    def build(self, name, source, *definitions):
        folder = self.work / name
        run([self.arguments.cmake, "-S", source, "-B", folder, "-G", "Ninja",
             f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_C_COMPILER={self.arguments.cc}",
             f"-DCMAKE_CXX_COMPILER={self.arguments.cxx}", *definitions])
        run([self.arguments.cmake, "--build", folder])
        return folder

    def run(self, *command, **environment):
        return run(command, env=dict(self.environment, **environment), cwd=self.work)


def check_find_package(consumer, examples):
    folder = consumer.build("from_c", examples / "from_c")
    require("in the store" in consumer.run(folder / "example_from_c"), "from_c")
    folder = consumer.build("select_only", examples / "select_only")
    require("batch 256" in consumer.run(folder / "example_select_only"), "select_only")
    folder = consumer.build("fetch_and_launch", examples / "fetch_and_launch")
    output = consumer.run(folder / "example_fetch_and_launch")
    require("every output is 3" in output, "fetch_and_launch")


def check_static(consumer, examples, here):
    folder = consumer.build("static", here / "static_consumer", f"-DEXAMPLES={examples}")
    # A program elsewhere, linked to a library that was moved: it must be told where manifests are.
    manifests = str(consumer.prefix / "share/cubist/manifests")
    output = consumer.run(folder / "example_from_c", CUBIST_MANIFESTS=manifests)
    require("in the store" in output, "static from_c")
    needed = run(["readelf", "-d", folder / "example_from_c"])
    require("libcubist" not in needed, "the static consumer needs no libcubist.so")


def check_pkg_config(consumer, examples):
    folders = list(consumer.prefix.rglob("cubist.pc"))
    require(len(folders) == 1, "one cubist.pc")
    # The prefix alone: the shared library's users have no development files of what it is made of.
    alone = {name: value for name, value in os.environ.items() if name != "PKG_CONFIG_PATH"}
    alone["PKG_CONFIG_LIBDIR"] = str(folders[0].parent)
    flags = run(["pkg-config", "--cflags", "--libs", "cubist"], env=alone).split()
    require(not [flag for flag in flags if flag.startswith("-D")], "no definition leaks to users")
    version = run(["pkg-config", "--modversion", "cubist"], env=alone).strip()
    program = consumer.work / "by_pkg_config"
    run([consumer.arguments.cc, "-std=c99", examples / "from_c" / "main.c", "-o", program, *flags])
    library_folder = next(consumer.prefix.rglob("libcubist.so")).parent
    output = consumer.run(program, LD_LIBRARY_PATH=str(library_folder))
    require("in the store" in output, "by pkg-config")

    environment = dict(os.environ, PKG_CONFIG_PATH=str(folders[0].parent))
    flags = run(["pkg-config", "--cflags", "--libs", "cubist-static"], env=environment).split()
    program = consumer.work / "by_static_pkg_config"
    run([consumer.arguments.cc, "-std=c99", examples / "from_c" / "main.c", "-o", program, *flags])
    output = consumer.run(program, CUBIST_MANIFESTS=str(consumer.prefix / "share/cubist/manifests"))
    require("in the store" in output, "by pkg-config, static")
    require("libcubist" not in run(["readelf", "-d", program]), "the static program needs no libcubist.so")
    return version


def check_tool(consumer, version):
    tool = consumer.prefix / "bin" / "cubist"
    if not tool.exists():
        print("the tool was not built; not tested")
        return
    require(version in consumer.run(tool, "--version"), "the tool's version is pkg-config's")
    output = consumer.run(tool, "select", "--manifest", "cubist-decode", "--device", "h200",
                          "--num-q-heads", "64", "--num-kv-heads", "8")
    require("cubist_decode" in output, "the installed tool finds the installed manifest")


def main():
    parser = argparse.ArgumentParser()
    for name in ("cmake", "source", "build", "libcuda", "cc", "cxx"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    cache = pathlib.Path(arguments.build, "CMakeCache.txt").read_text(encoding="utf-8")
    if "CUBIST_SANITIZE:STRING=\n" not in cache:
        print("a sanitized build is not meant to be installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="cubist-install-") as work:  # far from the source tree
        check_all(arguments, pathlib.Path(work))
    return 0


def check_all(arguments, work):
    staged = work / "staged"
    run([arguments.cmake, "--install", arguments.build, "--prefix", staged])
    prefix = work / "moved" / "elsewhere"  # an installed tree may be moved
    prefix.parent.mkdir()
    staged.rename(prefix)
    pc = next(prefix.rglob("cubist.pc"))
    require("prefix=" in pc.read_text(), "cubist.pc has a prefix")

    here = pathlib.Path(__file__).parent
    examples = pathlib.Path(arguments.source) / "examples"
    consumer = Consumer(arguments, prefix, work)
    check_find_package(consumer, examples)
    check_static(consumer, examples, here)
    check_tool(consumer, check_pkg_config(consumer, examples))


if __name__ == "__main__":
    sys.exit(main())
