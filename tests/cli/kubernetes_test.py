#!/usr/bin/env python3
"""What docs/oci.md tells Kubernetes to do, done without Kubernetes: the commands, variables and mounts of the
page's own YAML, each container in a mount namespace of its own, with the users and the read-only volume that
pods have. The registry asks for the password of the pull secret; the serving containers have no network.

    kubernetes_test.py TOOL FAKE_LIBCUDA
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cli import SOURCE, Tool, check  # noqa: E402
from oci_registry import PASSWORD, USER, DockerRegistry, installed, plain_base64  # noqa: E402

PULLER, SERVER = 1000, 2000
PLACEHOLDER = "oci://registry.example.com/team/kernels@sha256:<digest>"
PROBLEM = ["--device", "h200", "--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "128", "--batch", "4",
           "--max-kv-len", "1024", "--manifest", "site-decode"]
# A container's root file system: this machine's, with what its image adds, and nothing of it kept.
CONTAINER = r"""
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/system"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/system"
mkdir -p "$1/system/usr/local/bin" "$1/system/usr/local/share/cubist" "$1/system/proc" "$1/system/dev"
cp "$2/cubist" "$2/fake_libcuda.so" "$1/system/usr/local/bin/"
cp -r "$2/manifests" "$1/system/usr/local/share/cubist/"
mount --rbind /proc "$1/system/proc"
mount --rbind /dev "$1/system/dev"
root="$1/system" user="$3"
shift 3
while [ "$1" != -- ]; do
  mkdir -p "$root$2"
  mount --bind "$1" "$root$2"
  [ "$3" != ro ] || mount -o remount,bind,ro "$root$2"
  shift 3
done
shift
exec chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --inh-caps=-all -- "$@"
"""


def can_run():
    probe = "mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w /mnt/r && mount -t overlay o -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r"
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "strace", "minisign"))) or not installed():
        return False
    return subprocess.run(["unshare", "--mount", "--net", "sh", "-c", probe], capture_output=True, check=False).returncode == 0


def pod_of_page():
    """The page's YAML. Only what a test must know is changed: where the registry is, its digest, the key."""
    import yaml
    page = pathlib.Path(SOURCE, "docs/oci.md").read_text()
    found = re.findall(r"```yaml\n(.*?)```", page, re.S)
    check(len(found) == 1, "docs/oci.md has one YAML")
    return yaml.safe_load(found[0])["spec"]


class Pod:
    def __init__(self, folder, key, reference):
        self.folder, self.key, self.reference = folder, key, reference
        self.spec = pod_of_page()
        self.init, = self.spec["initContainers"]
        self.server, = self.spec["containers"]
        self.volumes = {}
        for volume in self.spec["volumes"]:
            place = folder / f"volume-{volume['name']}"
            place.mkdir()
            if "emptyDir" in volume:
                place.chmod(0o777)
            else:
                item, = volume["secret"]["items"]
                check(item["key"] == ".dockerconfigjson", "the secret that 'kubectl create secret docker-registry' makes")
                auth = {"auths": {reference.split("/")[2]: {"auth": plain_base64(f"{USER}:{PASSWORD}".encode())}}}
                (place / item["path"]).write_text(json.dumps(auth))
                (place / item["path"]).chmod(0o644)
            self.volumes[volume["name"]] = place

    def variables(self, container):
        values = {one["name"]: self.key if one["value"] == "RW..." else one["value"] for one in container["env"]}
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", **values}

    def run(self, container, user, command, network=False, sub_path="", **variables):
        mounts = []
        for mount in container["volumeMounts"]:
            source = self.volumes[mount["name"]] / (sub_path if mount["name"] == "kernels" else "")
            mounts += [source, mount["mountPath"], "ro" if mount.get("readOnly") else "rw"]
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        inside = ["env", "-i", *(f"{name}={value}" for name, value in {**self.variables(container), **variables}.items()), *command]
        if not network:
            inside = ["strace", "-f", "-qq", "-e", "trace=socket,connect", *inside]
        done = subprocess.run(["unshare", "--mount", *([] if network else ["--net"]), "sh", "-c", CONTAINER, "sh",
                               *map(str, [root, self.folder / "image", user, *mounts, "--", *inside])],
                              capture_output=True, text=True, check=False)
        # strace's lines. Where HOME is not set the C library asks for it, by a local socket to nscd.
        calls = re.findall(r"^.*(?:socket|connect)\((?!AF_UNIX|\d+, \{sa_family=AF_UNIX).*$", done.stderr, re.M)
        if command[1] == "doctor":  # it asks pip for its settings, and that whether there is IPv6
            calls = [line for line in calls if "connect(" in line]
        check(network or not calls, f"{command} opened a socket: {calls[:3]}")
        return done

    def serves(self, user, what, *words, sub_path="", **variables):
        """Everything a server does with kernels that are there."""
        variables = {"CUBIST_LIBCUDA": "/usr/local/bin/fake_libcuda.so", **variables}
        for command in (["doctor"], ["status", "--manifest", "site-decode", "--offline"],
                        ["fetch", "--offline", "--manifest", "site-decode", "--all", "--quiet"],
                        ["launch", "--dry-run", *PROBLEM], ["verify", "--manifest", "site-decode"],
                        ["prepare", "--manifest", "site-decode", "--offline"]):
            done = self.run(self.server, user, ["cubist", *command], sub_path=sub_path, **variables)
            check(done.returncode == 0, f"{what}: {command[0]} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
            warnings = [line for line in done.stderr.splitlines() if "warning" in line]
            check(len(warnings) == len(words) and all(word in line for word, line in zip(words, warnings)),
                  f"{what}: {command[0]} warns of {words}: {done.stderr}")


def make_image(tool, fake_libcuda, folder):
    (folder / "image").mkdir()
    shutil.copy(tool.program, folder / "image/cubist")
    shutil.copy(fake_libcuda, folder / "image/fake_libcuda.so")
    shutil.copytree(f"{SOURCE}/manifests", folder / "image/manifests")


def push_signed(tool, folder, registry):
    """A signed manifest's bundle, pushed; its reference by digest, and the key."""
    subprocess.run(["minisign", "-G", "-W", "-p", folder / "k.pub", "-s", folder / "k.key"], capture_output=True, check=True)
    shipped = json.loads(pathlib.Path(SOURCE, "manifests/cubist-decode.json").read_text())
    shipped.update(name="site-decode")
    shipped["packs"][0]["sources"] = [{"type": "folder", "location": f"{SOURCE}/kernels/prebuilt"}]
    (folder / "site-decode.json").write_text(json.dumps(shipped))
    subprocess.run(["minisign", "-S", "-W", "-s", folder / "k.key", "-m", folder / "site-decode.json"], capture_output=True,
                   check=True)
    made = tool("bundle", "create", "--manifest", folder / "site-decode.json", "--all", "-o", folder / "k.zip")
    check(made.code == 0, "a bundle", made)
    auth = folder / "push.json"
    auth.write_text(json.dumps({"auths": {registry.host: {"auth": plain_base64(f"{USER}:{PASSWORD}".encode())}}}))
    pushed = tool("push", folder / "k.zip", f"oci://{registry.host}/team/kernels:1", "--json", REGISTRY_AUTH_FILE=auth)
    check(pushed.code == 0, "a push", pushed)
    return f"oci://{registry.host}/team/kernels@{pushed.json()['digest']}", (folder / "k.pub").read_text().splitlines()[1]


def check_pod(pod):
    """As the YAML has it: another uid, a volume that anybody could write were it not mounted read-only."""
    check(pod.init["command"][:2] == ["cubist", "pull"] and PLACEHOLDER in pod.init["command"], "the page's pull is the one known")
    command = [pod.reference if word == PLACEHOLDER else word for word in pod.init["command"]]
    for turn in ("an empty volume", "a pod that is restarted"):
        done = pod.run(pod.init, PULLER, command, network=True)
        check(done.returncode == 0, f"{turn}: pull ends with {done.returncode}:\n{done.stdout}{done.stderr}")
        if turn != "an empty volume":
            check("\n2 of " in done.stdout and "\n0 kernels installed" in done.stdout, f"{turn}: no shard is asked for: {done.stdout}")
    before = sorted(str(path) for path in pod.volumes["kernels"].rglob("*"))
    pod.serves(SERVER, "another user", "can be written by everybody")
    pod.serves(SERVER, "another user who accepts that", CUBIST_FOREIGN_STORE="allow")
    refused = pod.run(pod.server, SERVER, ["cubist", "verify"], CUBIST_FOREIGN_STORE="refuse")
    check(refused.returncode == 4 and "can be written by everybody" in refused.stderr, f"refuse refuses: {refused.stderr}")
    stranger = pod.run(pod.server, SERVER, ["cubist", "launch", "--dry-run", *PROBLEM],
                       CUBIST_TRUSTED_KEYS="RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")
    check(stranger.returncode == 4, f"another key refuses the manifest: {stranger.stderr}")
    check(sorted(str(path) for path in pod.volumes["kernels"].rglob("*")) == before, "nothing was written into the volume")


def check_own_folder(pod):
    """The page's way to be rid of the warning: a folder of the server's own in the volume, and `subPath`."""
    command = [{PLACEHOLDER: pod.reference, "/kernels": "/kernels/store"}.get(word, word) for word in pod.init["command"]]
    done = pod.run(pod.init, SERVER, command, network=True)
    check(done.returncode == 0, f"pull into a folder of its own: {done.stdout}{done.stderr}")
    moved = dict(pod.server, volumeMounts=[dict(pod.server["volumeMounts"][0], mountPath="/kernels/store")])
    pod.server = moved
    pod.serves(SERVER, "the same user", sub_path="store", CUBIST_STORE="/kernels/store", CUBIST_FOREIGN_STORE="refuse")


def main():
    if not can_run():
        print("not root, or no namespaces, overlay, strace, minisign, docker-registry here: skipped")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        tool = Tool(sys.argv[1], folder)
        make_image(tool, sys.argv[2], folder)
        registry = DockerRegistry(folder / "registry", "basic")
        try:
            reference, key = push_signed(tool, folder, registry)
            for number, check_it in enumerate((check_pod, check_own_folder)):
                (folder / f"pod{number}").mkdir()
                (folder / f"pod{number}/image").symlink_to(folder / "image")
                check_it(Pod(folder / f"pod{number}", key, reference))
        finally:
            registry.end()
    print("ok: the page's init container as one user, its server as another, without a network")
    return 0


sys.exit(main())
