"""What the tests of the command line share: a run of it, and checks that name what they look at."""
import hashlib
import json
import os
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Run:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)


class Tool:
    """`cubist` without the user's own configuration, project or store."""

    def __init__(self, program, folder, **variables):
        self.program, self.folder = os.path.abspath(program), str(folder)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CUBIST_")}
        self.environment = {**kept, "CUBIST_CONFIG": "", "CUBIST_PROJECT": "",
                            "CUBIST_STORE": f"{folder}/store",
                            "CUBIST_MANIFESTS": f"{SOURCE}/manifests",
                            "CUBIST_PRESETS": f"{SOURCE}/data/presets", **variables}

    def __call__(self, *arguments, at=None, stdin=None, **variables):
        environment = {name: value for name, value in {**self.environment, **variables}.items()
                       if value is not None}
        return Run(subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True,
                                  check=False, env=environment, cwd=at or self.folder, input=stdin))


def check(good, what, run=None):
    if not good:
        sys.exit(f"FAILED: {what}" + (f"\nexit code {run.code}\n{run.out}{run.err}" if run else ""))


def check_fails(run, code, *words):
    """It ended with `code`, said one sentence with all of `words`, and no more on standard output."""
    check(run.code == code, f"exit code {code}", run)
    check(run.err.startswith("cubist: error: "), "an error is on standard error", run)
    for word in words:
        check(word in run.err, f"the error says '{word}'", run)


def sha256(data):
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def manifest(*names, name="made", revision="none", bytes_of=None, **traits):
    """A manifest with attention kernels of these names; bytes_of: name -> their bytes."""
    kernels = []
    for kernel in names:
        data = (bytes_of or {}).get(kernel, kernel.encode())
        kernels.append({"name": kernel, "sha256": sha256(data), "size": len(data), "arch": "sm_100f",
                        "traits": {"dtype_q": "bf16", "dtype_kv": "bf16", "dtype_o": "bf16", "head_dim_qk": 64,
                                   "tile_q": 16, "tile_kv": 128, "kernel_type": "swaps", "threads": 512,
                                   "smem": 40000, **traits}})
    layout = "none" if revision == "none" else revision.replace("0.6.13", "1280").replace("0.6.8", "1152")
    pack = {"name": "pack", "family": "trtllm_gen_fmha", "revision": revision, "param_layout": layout,
            "kernels": kernels}
    return json.dumps({"schema": "cubist.manifest", "schema_version": 1, "name": name, "packs": [pack]})
