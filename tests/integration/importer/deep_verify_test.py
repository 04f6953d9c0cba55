"""`cubist verify --deep` on published cubins: those that are what the shipped manifests say, and the
same ones held against manifests that say something else.

The wheels are taken as in generations_test.py; without any the test is skipped (77).
Usage: deep_verify_test.py CUBIST_TOOL SOURCE_DIR
"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from generations_test import SKIPPED, source_of

PER_RELEASE = 6


def some_kernels(manifest):
    """A manifest of a few of its kernels, far apart, so that types, layouts and architectures differ."""
    small = copy.deepcopy(manifest)
    del small["packs"][1:]
    kernels = small["packs"][0]["kernels"]
    small["packs"][0]["kernels"] = kernels[::len(kernels) // (PER_RELEASE - 1)][:PER_RELEASE]
    return small


def lies(manifest):
    """(what is said wrongly, what the error must name, the manifest that says so)"""
    def changed(change):
        lie = copy.deepcopy(manifest)
        change(lie["packs"][0], lie["packs"][0]["kernels"][0])
        return lie

    def rename(_pack, kernel):
        kernel["path"] = kernel.get("path", kernel["name"] + ".cubin")
        kernel["name"] += "X"

    def relayout(pack, _kernel):
        layout = {"trtllm-gen-fmha-1280": "trtllm-gen-fmha-1152", "trtllm-gen-fmha-1152": "trtllm-gen-fmha-1280"}
        pack["revision"], pack["param_layout"] = "none", layout[pack["param_layout"]]

    def specific(_pack, kernel):
        kernel["arch"] = "sm_103a" if kernel["arch"] != "sm_103a" else "sm_100f"

    def trait(name, change):
        return changed(lambda _pack, kernel: kernel["traits"].update({name: change(kernel["traits"].get(name))}))

    yield "threads", "threads", trait("threads", lambda value: value - 32)
    yield "shared memory", "smem", trait("smem", lambda value: value + 16)
    yield "two-CTA mark", "two_cta_mma", trait("two_cta_mma", lambda value: not value)
    yield "architecture", "arch", changed(specific)
    yield "function", "name: the manifest", changed(rename)
    yield "parameter layout", "param", changed(relayout)


class Checker:
    def __init__(self, tool, folder):
        self.tool, self.folder, self.failures = tool, folder, []
        self.environment = {**os.environ, "CUBIST_STORE": f"{folder}/store", "CUBIST_CONFIG": "", "CUBIST_PROJECT": ""}

    def run(self, *arguments):
        return subprocess.run([self.tool, *map(str, arguments)], capture_output=True, text=True, check=False,
                              env=self.environment)

    def verify(self, manifest):
        path = self.folder / "manifest.json"
        path.write_text(json.dumps(manifest))
        done = self.run("verify", "--deep", "--json", "--manifest", path)
        return done, json.loads(done.stdout)["broken"] if done.stdout else []

    def expect(self, good, what, done):
        if not good:
            self.failures.append(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def check_release(checker, manifest, source, version):
    small = some_kernels(manifest)
    path = checker.folder / "small.json"
    path.write_text(json.dumps(small))
    fetched = checker.run("fetch", "--manifest", path, "--all", "--source", source)
    checker.expect(fetched.returncode == 0, f"{version}: fetch", fetched)
    done, broken = checker.verify(small)
    checker.expect(done.returncode == 0 and not broken, f"{version}: the manifest's own cubins", done)
    caught = 0
    for what, word, lie in lies(small):
        done, broken = checker.verify(lie)
        good = done.returncode == 4 and broken and all(word in one["error"]["message"] for one in broken)
        checker.expect(good, f"{version}: a wrong {what}", done)
        caught += good
    digest = small["packs"][0]["kernels"][0]["sha256"]
    entry = checker.folder / "store/sha256" / digest[:2] / f"{digest}.cubin"
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    entry.unlink()
    entry.write_bytes(data)
    done, broken = checker.verify(small)
    checker.expect(done.returncode == 4 and [one["sha256"] for one in broken] == [digest], f"{version}: one bit", done)
    print(f"{version}: {len(small['packs'][0]['kernels'])} cubins agree, {caught} wrong statements found")


def main(tool, source_dir):
    checked = 0
    with tempfile.TemporaryDirectory() as name:
        checker = Checker(tool, pathlib.Path(name))
        for version in ("0.6.8", "0.6.13"):
            source = source_of(version)
            if source is None:
                continue
            manifest = json.loads((pathlib.Path(source_dir) / f"manifests/flashinfer-{version}.json").read_text())
            check_release(checker, manifest, source, version)
            checked += 1
    print("\n".join(checker.failures))
    if checker.failures:
        return 1
    return 0 if checked else SKIPPED


sys.exit(main(sys.argv[1], sys.argv[2]))
