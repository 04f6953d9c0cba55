#!/usr/bin/env python3
"""`cubist bundle`, from outside: what is created is the same each time, goes through nobody's hands
unchecked, and works by name where it was installed, without a socket.

    bundle_test.py TOOL
"""
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

from cli import SOURCE, Tool, check, check_fails, manifest, sha256

KERNELS = {f"kernel_{i}": b"\x7fELF" + bytes([i]) * (1000 + i) + os.urandom(200) for i in range(6)}


class Site:
    """A manifest whose kernels lie in a folder, as where there is a network."""

    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        folder.mkdir()
        tree = folder / "tree"
        tree.mkdir()
        for name, data in KERNELS.items():
            (tree / f"{name}.cubin").write_bytes(data)
        document = json.loads(manifest(*KERNELS, bytes_of=KERNELS))
        document["packs"][0].update(license="Apache-2.0", version="1.0",
                                    sources=[{"type": "folder", "location": "tree"}])
        self.manifest = folder / "made.json"
        self.manifest.write_text(json.dumps(document))

    def create(self, output, *arguments, **variables):
        return self.tool("bundle", "create", "--manifest", self.manifest, "-o", output, *arguments, **variables)


def stored(store):
    return sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()) if store.exists() else []


def check_create(tool, site, folder):
    one = site.create(folder / "one.zip", "--kernel", "kernel_1", "--kernel", sha256(KERNELS["kernel_2"]), "--json")
    check(one.code == 0 and one.json()["kernels"] == 2, "kernels by name and by digest", one)
    check(one.json()["sha256"] == hashlib.sha256((folder / "one.zip").read_bytes()).hexdigest(), "its hash", one)
    check(site.create(folder / "filtered.zip", "--name", "kernel_[", "--json").code == 2, "no kernel passes")
    some = site.create(folder / "filtered.zip", "--name", "*_3", "--json")
    check(some.code == 0 and some.json()["kernels"] == 1, "filters", some)
    working_set = folder / "set.json"
    working_set.write_text(json.dumps({
        "schema": "cubist.working_set", "schema_version": 1, "manifests": [str(site.manifest)],
        "kernels": [{"name": name, "pack": "pack", "sha256": sha256(KERNELS[name]), "size": len(KERNELS[name])}
                    for name in ("kernel_0", "kernel_4", "kernel_5")]}))
    of_set = tool("bundle", "create", "--working-set", working_set, "-o", folder / "set.zip", "--json")
    check(of_set.code == 0 and of_set.json()["kernels"] == 3, "a working set names its manifest", of_set)
    narrowed = tool("bundle", "create", "--working-set", working_set, "--name", "*_4", "-o", folder / "n.zip", "--json")
    check(narrowed.code == 0 and narrowed.json()["kernels"] == 1, "filters narrow a set", narrowed)

    with zipfile.ZipFile(folder / "one.zip") as made:
        names = made.namelist()
        check(made.testzip() is None, "other programs read it")
        check(names[0] == "bundle.json" and names[1] == "manifests/made.json", f"members: {names}")
        check(made.read("manifests/made.json").decode() == site.manifest.read_text(), "the manifest byte for byte")
        check("Apache License" in made.read("LICENSE").decode(), "the licence's text is in it")
        check("pack 1.0: Apache-2.0" in made.read("NOTICE").decode(), "the notice names the pack")
        provenance = json.loads(made.read("bundle.json"))["provenance"]
        check(provenance["packs"][0]["sources"] == ["tree"] and provenance["tool"].startswith("cubist "), provenance)
        check(os.uname().nodename not in made.read("bundle.json").decode(), "no host name")
        check({info.date_time for info in made.infolist()} == {(1980, 1, 1, 0, 0, 0)}, "no time stamps")

    check_fails(site.create(folder / "x.zip"), 2, "--working-set", "--all")
    check_fails(site.create(folder / "x.zip", "--all", "--kernel", "kernel_1"), 2, "--all")
    check_fails(site.create(folder / "x.zip", "--kernel", "nobody"), 2, "'nobody'", "cubist list")
    check_fails(site.create(folder / "no/such/x.zip", "--all"), 6, "no/such/x.zip")
    check_fails(site.create(folder, "--all"), 6, "is a folder")
    check_fails(tool("bundle", "create", "--manifest", "cubist-decode", "--all", "--offline", "--source",
                     "http://127.0.0.1:9/", "-o", folder / "x.zip"), 7)
    check(not (folder / "x.zip").exists() and not list(folder.glob("x.zip.*")), "nothing was left behind")


def check_licences(tool, site, folder):
    odd = folder / "odd.json"
    odd.write_text(site.manifest.read_text().replace("Apache-2.0", "LicenseRef-Odd").replace(
        '"tree"', json.dumps(str(site.folder / "tree"))))
    arguments = ["bundle", "create", "--manifest", odd, "--all", "-o", folder / "odd.zip"]
    check_fails(tool(*arguments), 2, "'LicenseRef-Odd'", "--license FILE")
    text = folder / "odd.txt"
    text.write_text("All may use it.\n")
    check(tool(*arguments, "--license", text, "--notice", text).code == 0, "a licence is given by hand")
    with zipfile.ZipFile(folder / "odd.zip") as made:
        check("All may use it." in made.read("LICENSE").decode(), "its text is in it")
        check("All may use it." in made.read("NOTICE").decode(), "and the notice")


def check_reproducible(tool, site, folder):
    """Other folder, umask, time zone, locale and store; the same bytes."""
    first, second = folder / "first.zip", folder / "sub" / "second.zip"
    second.parent.mkdir()
    check(site.create(first, "--all").code == 0, "create")
    old = os.umask(0o077)
    run = site.create(second, "--all", at=folder / "sub", TZ="Asia/Tokyo", LC_ALL="tr_TR.UTF-8",
                      CUBIST_STORE=str(folder / "other-store"))
    os.umask(old)
    check(run.code == 0 and first.read_bytes() == second.read_bytes(), "the same bytes", run)
    plain = folder / "stored.zip"
    check(site.create(plain, "--all", "--stored").code == 0, "--stored")
    identities = [tool("bundle", "inspect", path, "--json").json()["identity"] for path in (first, plain)]
    check(identities[0] == identities[1] and plain.stat().st_size > first.stat().st_size, "one identity")
    piped = subprocess.run([tool.program, "bundle", "create", "--manifest", site.manifest, "--all", "-o", "-"],
                           capture_output=True, env=tool.environment, cwd=folder, check=True)
    check(piped.stdout == first.read_bytes(), "standard output takes it too")
    return first


def check_inspect(tool, good):
    shown = tool("bundle", "inspect", good)
    check(shown.code == 0 and "not verified" in shown.out and "6, " in shown.out, "inspect says what it did not do", shown)
    verified = tool("bundle", "inspect", good, "--verify", "--json")
    check(verified.code == 0 and verified.json()["verified"] == "everything", "--verify", verified)
    check(len(verified.json()["kernels"]) == 6 and verified.json()["packs"][0]["license"] == "Apache-2.0", "json", verified)
    check_fails(tool("bundle", "inspect", "https://host.invalid/x.zip", "--offline"), 7, "--offline")
    check_fails(tool("bundle", "inspect", good.parent / "nothing.zip"), 2, "nothing.zip")


def check_install(tool, site, good, folder):
    store = folder / "fresh"
    fresh = {"CUBIST_STORE": str(store)}
    done = tool("bundle", "install", good, "--unpack", "--json", **fresh)
    check(done.code == 0 and done.json()["installed"] == 6, "install", done)
    check(done.json()["manifests"] == [{"name": "made", "path": f"{store}/manifests/made.json", "state": "installed"}],
          "where the manifest went", done)
    for data in KERNELS.values():
        path = store / "sha256" / sha256(data)[:2] / f"{sha256(data)}.cubin"
        check(path.read_bytes() == data and path.stat().st_mode & 0o222 == 0, f"{path} is whole and read-only")
    check((store / "manifests/made.json").read_text() == site.manifest.read_text(), "byte for byte")
    before = stored(store)
    again = tool("bundle", "install", good, "--json", **fresh)
    check(again.code == 0 and again.json()["present"] == 6 and again.json()["installed"] == 0, "again", again)
    check(stored(store) == before, "nothing new")
    fetched = tool("fetch", "--offline", "--manifest", "made", "--all", "--json", **fresh)
    check(fetched.code == 0 and fetched.json()["present"] == 6 and fetched.json()["requests"] == 0, "by name", fetched)
    check("made" in tool("manifest", "list", **fresh).out, "manifest list shows it")
    by_flag = tool("fetch", "--offline", "--manifest", "made", "--all", "--store", store)
    check(by_flag.code == 0, "--store names the store whose manifests count", by_flag)

    broken = store / "sha256" / sha256(KERNELS["kernel_0"])[:2] / f"{sha256(KERNELS['kernel_0'])}.cubin"
    broken.chmod(0o644)
    broken.write_bytes(b"rotten")
    mended = tool("bundle", "install", good, "--unpack", "--json", **fresh)
    check(mended.json()["installed"] == 1 and broken.read_bytes() == KERNELS["kernel_0"], "a broken entry is mended", mended)

    layered = {"CUBIST_STORE": str(folder / "upper"), "CUBIST_STORE_BASE": str(store)}
    over = tool("bundle", "install", good, "--json", **layered)
    check(over.json()["present"] == 6 and not (folder / "upper/sha256").exists(), "a layer below has it", over)
    base = tool("bundle", "install", good, "--store", folder / "base", "--json", **layered)
    check(base.json()["installed"] == 6, "a store that is named gets everything", base)
    apart = tool("bundle", "install", good, "--store", folder / "s2", "--manifest-dir", folder / "dir", "--json")
    check(apart.code == 0 and stored(folder / "dir") == ["made.json"], "--manifest-dir", apart)
    check_fails(tool("bundle", "install", "https://host/x.zip"), 2, "URL")
    source = tool("fetch", "--manifest", site.manifest, "--all", "--source", good, "--store", folder / "from-zip", "--json")
    check(source.code == 0 and source.json()["fetched"] == 6, "a bundle is a source", source)


def check_kept(tool, site, good, folder):
    """The bundle's file in the store: every command takes its kernels for what they are, present."""
    store = folder / "kept-bundle"
    here = {"CUBIST_STORE": str(store)}
    done = tool("bundle", "install", good, "--json", **here)
    check(done.code == 0 and done.json()["installed"] == 6, "install", done)
    kept = pathlib.Path(done.json()["bundle"])
    identity = tool("bundle", "inspect", good, "--json").json()["identity"]
    check(kept == store / "bundles" / f"{identity}.zip" and kept.read_bytes() == good.read_bytes(), "the file", done)
    check(stored(store) == [f"bundles/{identity}.zip", "manifests/made.json"], "and nothing else")
    before = stored(store)
    fetched = tool("fetch", "--offline", "--manifest", "made", "--all", "--json", **here)
    check(fetched.code == 0 and fetched.json()["present"] == 6, "fetch", fetched)
    one = tool("fetch", "--offline", "--manifest", "made", "--kernel", "kernel_2", "--json", **here)
    check(one.code == 0 and one.json()["files"][0]["path"] == str(kept), "fetch of one", one)
    status = tool("status", "--manifest", "made", "--offline", "--json", **here)
    check(status.code == 0 and status.json()["manifests"][0]["complete"], "status", status)
    check(status.json()["layers"][0]["bundled_kernels"] == 6, "status counts them", status)
    check("6 kernels in 1 bundles" in tool("status", **here).out, "in words")
    doctor = tool("doctor", "--json", **here)
    check(doctor.json()["store"]["bundled_kernels"] == 6, "doctor", doctor)
    verified = tool("verify", "--json", **here)
    check(verified.code == 0 and verified.json()["checked"] == 6, "verify", verified)
    check(tool("verify", "--manifest", "made", **here).code == 0, "verify of a manifest")
    made = tool("bundle", "create", "--manifest", "made", "--all", "--offline", "-o", folder / "again.zip", "--json", **here)
    check(made.code == 0 and made.json()["identity"] == identity and made.json()["fetched"] == 0, "bundle create", made)
    check(stored(store) == before, "nothing of this wrote into the store")
    pinned = tool("gc", "--max-size", "1", "--pin", "made", "--json", **here)
    check(pinned.code == 0 and pinned.json()["kept_pinned"] == 1 and kept.exists(), "gc with a pin", pinned)

    data = bytearray(kept.read_bytes())
    with zipfile.ZipFile(kept) as bundle:
        digest = sha256(KERNELS["kernel_0"])
        data[bundle.getinfo(f"sha256/{digest[:2]}/{digest}.cubin").header_offset + 200] ^= 1
    kept.chmod(0o644)
    kept.write_bytes(data)
    found = tool("verify", **here)
    check(found.code == 4 and digest in found.out and "1 broken" in found.out, "a broken kernel in a bundle is found", found)
    mended = tool("verify", "--repair", "--manifest", "made", "--source", site.folder / "tree", "--json", **here)
    check(mended.code == 0 and mended.json()["repaired"] == 1 and mended.json()["broken"][0]["state"] == "repaired", "mended", mended)
    check(len(list(store.glob("sha256/*/*"))) == 1, "by one entry")
    check(tool("verify", **here).code == 0, "and then all is well")
    kept.write_bytes(b"<html>")
    found = tool("verify", **here)
    check(found.code == 4 and "is no complete zip file" in found.out, "what is no bundle is found", found)
    check(tool("verify", "--repair", **here).code == 0 and not kept.exists(), "and removed, since nobody knows what it was")
    check(tool("bundle", "install", good, **here).code == 0 and kept.read_bytes() == good.read_bytes(), "installed again")
    entry = store / "sha256" / digest[:2] / f"{digest}.cubin"
    entry.chmod(0o644)
    entry.write_bytes(bytes(entry.stat().st_size))
    mended = tool("verify", "--repair", "--offline", "--manifest", "made", **here)
    check(mended.code == 0 and entry.read_bytes() == KERNELS["kernel_0"], "a broken entry is mended from the bundle", mended)
    kept.chmod(0o644)
    kept.write_bytes(good.read_bytes()[:-10])
    below = tool("verify", "--repair", CUBIST_STORE=str(folder / "above"), CUBIST_STORE_BASE=str(store))
    check(below.code == 4 and "where it lies" in below.err and kept.exists(), "a broken bundle below stays, and is told", below)
    check(tool("bundle", "install", good, **here).code == 0 and kept.read_bytes() == good.read_bytes(), "and again")
    removed = tool("gc", "--max-size", "0", "--json", **here)
    check(removed.code == 0 and not kept.exists(), "gc removes it as a whole", removed)
    bare = json.loads(site.manifest.read_text())
    bare["packs"][0]["sources"] = []
    (folder / "bare.json").write_text(json.dumps(bare))
    missing = tool("fetch", "--offline", "--manifest", folder / "bare.json", "--all", **here)
    check(missing.code == 7, "without a source, offline: missing", missing)


def check_list_and_remove(tool, site, good, folder):
    store, base = folder / "listed", folder / "base"
    empty = tool("bundle", "list", "--store", store)
    check(empty.code == 0 and "no bundle is kept" in empty.out and not store.exists(), "none is no error", empty)
    check(tool("bundle", "list", "--store", store, "--json").json()["bundles"] == [], "as JSON")
    few = folder / "few.zip"
    site.create(few, "--kernel", "kernel_0", "--bundle-name", "few")
    for place in (store, base):
        check(tool("bundle", "install", good, "--store", place).code == 0, "installed")
    check(tool("bundle", "install", few, "--store", folder / "other").code == 0, "installed elsewhere")
    few_path = next((folder / "other/bundles").iterdir())
    shutil.copy(few_path, store / "bundles")
    layers = {"CUBIST_STORE": store, "CUBIST_STORE_BASE": base}
    listed = tool("bundle", "list", "--json", **layers)
    rows = listed.json()["bundles"]
    check(listed.code == 0 and len(rows) == 3 and {row["layer"] for row in rows} == {str(store), str(base)}, "all layers", listed)
    row = next(row for row in rows if row["name"] == "made" and row["layer"] == str(store))
    path = pathlib.Path(row["path"])
    check(row["kernels"] == len(KERNELS) and row["manifests"] == ["made"] and row["size"] == path.stat().st_size and
          path.name == row["identity"] + ".zip", "what is in it", listed)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    text = tool("bundle", "list", **layers)
    check(row["identity"][:12] in text.out and "used 2020-09-13T12:26:40Z" in text.out, "in words", text)

    before = stored(store)
    check_fails(tool("bundle", "remove", "nosuch", **layers), 2, "'nosuch'", row["identity"][:12], "few")
    check_fails(tool("bundle", "remove", row["identity"][:5], **layers), 2, "6 digits")
    own = tool("bundle", "remove", "made", "--dry-run", **layers)
    check(own.code == 0 and f"would remove {path}" in own.out, "of the same bundle in two layers, that of the store", own)
    site.create(folder / "namesake.zip", "--kernel", "kernel_1", "--bundle-name", "made")
    check(tool("bundle", "install", folder / "namesake.zip", "--store", folder / "namesake").code == 0, "another of that name")
    check_fails(tool("bundle", "remove", "made", CUBIST_STORE=store, CUBIST_STORE_BASE=folder / "namesake"), 2,
                "2 bundles are called 'made'", str(path), str(folder / "namesake"))
    check_fails(tool("bundle", "remove", next(r["path"] for r in rows if r["layer"] == str(base)), **layers), 2,
                "only read here", f"--store {base}")
    check_fails(tool("bundle", "remove", path, "few", "--pin", site.manifest, **layers), 2, "--pin")
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        refused = tool("bundle", "remove", path, "--json", **layers)
        check_fails(refused, 6, "in use", str(path))
        check(refused.json()["error"]["exit_code"] == 6 and refused.json()["removed"] == [], "as JSON", refused)
    dry = tool("bundle", "remove", path, "--manifests", "--dry-run", **layers)
    check(dry.code == 0 and f"would remove {path}" in dry.out and
          f"{len(KERNELS)} of its {len(KERNELS)} kernels are still served" in dry.out, "--dry-run", dry)
    check(f"would remove {store}/manifests" not in dry.out, "a manifest that another bundle has stays", dry)
    check(stored(store) == before, "nothing was removed")

    gone = tool("bundle", "remove", row["identity"][:8], "--json", CUBIST_STORE=store)
    check(gone.code == 0 and gone.json()["removed"][0]["kernels_elsewhere"] == 1, "one kernel is in the other", gone)
    check(not path.exists() and (store / "manifests/made.json").exists(), "its manifest stays")
    left = tool("status", "--manifest", site.manifest, "--json", CUBIST_STORE=store).json()["manifests"][0]
    check(len(left["missing"]) == len(KERNELS) - 1, "and the others are missing")
    for command in (["status", "--offline"], ["verify"]):
        check_fails(tool(*command, "--manifest", site.manifest, CUBIST_STORE=store), 7, "'cubist bundle install'")
    check_fails(tool("fetch", "--all", "--manifest", site.manifest, "--offline", "--source", "https://host.invalid/x/",
                     CUBIST_STORE=store), 7, "'cubist bundle create' there, 'cubist bundle install' here")
    for flags in ([], ["--all"]):
        check_fails(tool("fetch", *flags, "--source", "oci://host/team/kernels:v1"), 2, "'cubist pull oci://host/team/kernels:v1' brings")
    check_fails(tool("fetch", "--all", "--manifest", site.manifest, "--source", "oci:host/team:v1"), 2,
                "--source: ", "oci://HOST/REPOSITORY:TAG", "cubist pull")
    last = tool("bundle", "remove", "few", "--manifests", CUBIST_STORE=store)
    check(last.code == 0 and not any(stored(store / name) for name in ("bundles", "manifests")), f"--manifests: {stored(store)}", last)
    broken = store / "bundles" / ("0" * 64 + ".zip")
    broken.write_bytes(b"no zip")
    listed = tool("bundle", "list", "--json", CUBIST_STORE=store)
    check_fails(listed, 4, broken.name)
    check(listed.json()["bundles"][0]["error"]["code"] == "integrity", "a broken one is listed as such", listed)
    check(tool("bundle", "remove", "0" * 10, CUBIST_STORE=store).code == 0 and not broken.exists(), "and can be removed")


def check_damaged_description(tool, site, good, folder):
    """What serves kernels is kept and told of, however little of the rest of the bundle is right."""
    store = folder / "damaged"
    here = {"CUBIST_STORE": store}
    check(tool("bundle", "install", good, **here).code == 0, "install")
    path = next((store / "bundles").iterdir())
    data = bytearray(path.read_bytes())
    data[61] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    check(tool("status", "--manifest", site.manifest, **here).code == 0, "its kernels serve")
    listed = tool("bundle", "list", "--json", **here)
    check(listed.code == 4 and "error" in listed.json(), "list calls it broken", listed)
    for flags in ([], ["--repair", "--offline"]):
        found = tool("verify", *flags, "--json", **here)
        check(found.code == 4 and [row["path"] for row in found.json()["broken"]] == [str(path)], "so does verify", found)
        check(path.read_bytes() == data, "nothing is removed that serves")
    check("install or pull the bundle again" in tool("verify", "--repair", "--offline", **here).err, "and what to do")
    check_fails(tool("bundle", "remove", path, "--pin", site.manifest, **here), 2, "--pin keeps", str(path))
    check(path.exists(), "a pinned kernel keeps it")
    few = next((folder / "other/bundles").iterdir())
    shutil.copy(few, store / "bundles")
    dry = tool("bundle", "remove", "few", "--dry-run", "--json", **here)
    check(dry.code == 0 and dry.json()["removed"][0]["kernels_elsewhere"] == 1, "it is counted as one that serves", dry)
    gone = tool("bundle", "remove", path, "--json", **here)
    row = gone.json()["removed"][0]
    check(gone.code == 0 and row["kernels_elsewhere"] == 1 and "error" not in row and "bundle.json" in row["problem"] and
          not path.exists(), "it can go, which is no error", gone)

    wrong = store / "bundles" / ("0" * 64 + ".zip")
    (store / "bundles" / few.name).rename(wrong)
    check_fails(tool("bundle", "list", **here), 4, "0" * 64, few.stem)
    listed = tool("bundle", "list", "--json", **here)
    check(listed.json()["bundles"][0]["error"]["code"] == "integrity", "a name is no identity", listed)
    check_fails(tool("verify", **here), 4)
    check_fails(tool("bundle", "remove", "0" * 8, "--pin", site.manifest, **here), 2, "--pin keeps")
    check(tool("bundle", "remove", "0" * 8, **here).code == 0 and not wrong.exists(), "it can be removed")
    wrong.mkdir()
    check_fails(tool("bundle", "list", **here), 4, "is no regular file", str(wrong))
    wrong.rmdir()
    wrong.symlink_to(few)
    check_fails(tool("bundle", "list", **here), 4, "is no regular file", str(wrong))


def check_aux(tool, site, folder):
    """What docs/working-sets.md says of the kernels launched beside others: fetched, bundled, or merged into one manifest."""
    page = pathlib.Path(SOURCE, "docs/working-sets.md").read_text()
    for command in ("cubist fetch --manifest cubist-aux --all --arch sm_100f ",
                    "cubist bundle create --manifest cubist-aux --arch sm_100f -o aux.zip",
                    "cubist manifest merge part.json cubist-aux --manifest-name fleet -o fleet.json",
                    "cubist bundle create --manifest fleet.json --all -o fleet.zip"):
        check(command in page, f"docs/working-sets.md says '{command}'")
    here = {"CUBIST_STORE": folder / "aux-here", "CUBIST_MANIFESTS": f"{SOURCE}/manifests"}
    there = {"CUBIST_STORE": folder / "aux-there", "CUBIST_MANIFESTS": f"{SOURCE}/manifests"}
    some = ["--manifest", "cubist-aux", "--all", "--arch", "sm_100f", "--offline"]
    check(tool("fetch", *some, **here).code == 0 and len(list(here["CUBIST_STORE"].rglob("*.cubin"))) == 5, "fetched")
    made = tool("bundle", "create", "--manifest", "cubist-aux", "--arch", "sm_100f", "--offline", "-o", folder / "aux.zip", **here)
    check(made.code == 0, "bundled", made)
    check_fails(tool("fetch", *some, "--source", folder, **there), 6, "bundle")
    check(tool("bundle", "install", folder / "aux.zip", **there).code == 0, "installed")
    check(tool("fetch", *some, "--source", folder, **there).code == 0, "all is there, and no source is asked")
    merged = tool("manifest", "merge", site.manifest, "cubist-aux", "--manifest-name", "fleet", "-o", folder / "fleet.json", **here)
    check(merged.code == 0, "merged", merged)
    made = tool("bundle", "create", "--manifest", folder / "fleet.json", "--all", "--offline", "-o", folder / "fleet.zip", "--json", **here)
    aux = json.loads((pathlib.Path(SOURCE) / "manifests/cubist-aux.json").read_text())
    count = sum(len(pack["kernels"]) for pack in aux["packs"])
    check(made.code == 0 and made.json()["kernels"] == len(KERNELS) + count, "one bundle of both", made)
    fleet = json.loads((folder / "fleet.json").read_text())["packs"]
    check([pack["min_driver"] for pack in fleet if pack["family"] == "cubist_aux"] == ["13.0"] * 3 and
          "min_driver" not in fleet[0], "each keeps what it needs of the driver", merged)


def check_names(tool, site, good, folder):
    other = folder / "other"
    other.mkdir()
    changed = site.manifest.read_text().replace('"1.0"', '"2.0"').replace(
        '"tree"', json.dumps(str(site.folder / "tree")))
    (other / "made.json").write_text(changed)
    newer = folder / "newer.zip"
    run = tool("bundle", "create", "--manifest", other / "made.json", "--all", "-o", newer)
    check(run.code == 0, "create", run)
    store = folder / "names"
    check(tool("bundle", "install", good, "--store", store).code == 0, "install")
    before = stored(store)
    check_fails(tool("bundle", "install", newer, "--store", store), 2, "'made'", "--replace", "--as", sha256(changed))
    check(stored(store) == before and (store / "manifests/made.json").read_text() == site.manifest.read_text(), "kept")
    check(tool("bundle", "install", newer, "--store", store, "--as", "made-2").code == 0, "--as")
    check((store / "manifests/made-2.json").read_text() == changed, "the other name")
    check_fails(tool("bundle", "install", newer, "--store", store, "--as", "../x"), 2, "no name")
    check(tool("bundle", "install", newer, "--store", store, "--replace").code == 0, "--replace")
    check((store / "manifests/made.json").read_text() == changed, "replaced")
    # A name that means something else before the store is looked into.
    hidden = tool("bundle", "install", good, "--store", folder / "hidden", CUBIST_MANIFESTS=str(other))
    check_fails(hidden, 2, str(other / "made.json"), "--as")
    check(not (folder / "hidden").exists(), "nothing was written")
    (store / "manifests/made.json").unlink()
    (store / "manifests/made.json").symlink_to(folder / "victim")
    check_fails(tool("bundle", "install", good, "--store", store), 6, "manifests/made.json")
    check(not (folder / "victim").exists(), "a link is not followed")


def rewritten(good, bad, change):
    """The bundle with its members changed by `change` (name -> (new name, bytes)), in the same form."""
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as target:
        for info in source.infolist():
            for name, data, mode in change(info.filename, source.read(info)):
                made = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                made.external_attr, made.compress_type = mode << 16, zipfile.ZIP_DEFLATED
                target.writestr(made, data)


def check_refused(tool, good, folder):
    def as_is(name, data):
        return [(name, data, 0o100644)]

    def with_member(name, data=b"x", mode=0o100644):
        return lambda n, d: as_is(n, d) + ([(name, data, mode)] if n == "LICENSE" else [])

    kernel = next(iter(sorted(sha256(data) for data in KERNELS.values())))
    member = f"sha256/{kernel[:2]}/{kernel}.cubin"
    whole = good.read_bytes()
    cases = {
        "traversal": (with_member("../../evil"), "evil"),
        "absolute": (with_member("/etc/evil"), "evil"),
        "foreign": (with_member("run.sh"), "run.sh"),
        "twice": (with_member("NOTICE"), "NOTICE"),
        "case": (with_member("license"), "license"),
        "link": (lambda n, d: [(n, b"/etc/passwd" if n == "LICENSE" else d, 0o120777 if n == "LICENSE" else 0o100644)],
                 "LICENSE"),
        "device": (lambda n, d: [(n, d, 0o060666 if n == "NOTICE" else 0o100644)], "NOTICE"),
        "missing": (lambda n, d: [] if n == member else as_is(n, d), kernel),
        "bomb": (lambda n, d: as_is(n, bytes(50_000_000) if n == member else d), kernel),
        "kernel": (lambda n, d: as_is(n, d[:-1] + b"?" if n == member else d), kernel),
        "manifest": (lambda n, d: as_is(n, d.replace(b"kernel_1", b"kernel_X") if n.startswith("manif") else d), "made.json"),
    }
    for name, (change, word) in cases.items():
        bad = folder / f"bad-{name}.zip"
        rewritten(good, bad, change)
        check_no_trace(tool, bad, folder, name, word)
    for name, data in {"behind": whole + b"x", "before": b"x" + whole, "cut": whole[:-30], "empty": b"",
                       "text": b"hello", "wheel": None}.items():
        bad = folder / f"bad-{name}.zip"
        if data is None:
            with zipfile.ZipFile(bad, "w") as wheel:
                wheel.writestr("a/b.txt", "x")
        else:
            bad.write_bytes(data)
        check_no_trace(tool, bad, folder, name, bad.name)


def check_no_trace(tool, bad, folder, name, word):
    store = folder / f"store-{name}"
    check_fails(tool("bundle", "install", bad, "--store", store), 4, bad.name, word)
    check(not (store / "manifests").exists(), f"{name}: no manifest was installed")
    check(not list(store.glob("tmp/*")), f"{name}: no temporary file was left")
    for path in store.rglob("*.cubin"):
        check(path.stem == hashlib.sha256(path.read_bytes()).hexdigest(), f"{name}: {path} is right")
    check_fails(tool("bundle", "inspect", bad, "--verify"), 4, bad.name, word)


def check_trust(tool, site, folder):
    for key in ("good", "bad"):
        subprocess.run(["minisign", "-G", "-W", "-p", folder / f"{key}.pub", "-s", folder / f"{key}.key"],
                       capture_output=True, check=True)

    def sign(path, key="good"):
        subprocess.run(["minisign", "-S", "-W", "-s", folder / f"{key}.key", "-m", path], capture_output=True, check=True)

    unsigned = folder / "unsigned.zip"
    check(site.create(unsigned, "--all").code == 0, "create")
    sign(site.manifest)
    signed = folder / "signed.zip"
    check(site.create(signed, "--all").code == 0, "create signed")
    with zipfile.ZipFile(signed) as made:
        check(made.read("manifests/made.json.minisig") == (site.folder / "made.json.minisig").read_bytes(), "signature")
    trusted = ["--trusted-key", folder / "good.pub"]
    store = folder / "trusting"
    run = tool("bundle", "install", signed, "--store", store, *trusted, "--manifest-signatures", "refuse")
    check(run.code == 0 and (store / "manifests/made.json.minisig").exists(), "a good signature", run)
    used = tool("fetch", "--manifest", "made", "--store", store, "--offline", "--all", *trusted,
                "--manifest-signatures", "refuse")
    check(used.code == 0, "and it is good where it is used", used)
    shown = tool("bundle", "inspect", signed, "--verify", "--json", *trusted)
    check(shown.json()["manifests"][0]["signed_by"] is not None, "inspect says by whom", shown)
    nowhere = folder / "nowhere"
    check_fails(tool("bundle", "install", signed, "--store", nowhere, "--trusted-key", folder / "bad.pub"), 4, "made.json")
    check_fails(tool("bundle", "install", unsigned, "--store", nowhere, *trusted, "--manifest-signatures", "refuse"), 4,
                "made.json", "not signed")
    renamed = folder / "renamed.zip"
    with zipfile.ZipFile(signed) as made:
        document = json.loads(made.read("bundle.json"))
    check(document["manifests"][0]["name"] == "made", "a bundle's manifest has its own name")
    rewritten(signed, renamed, lambda name, data: [
        (name.replace("made", "prod"), data.replace(b"made", b"prod") if name == "bundle.json" else data, 0o100644)])
    check_fails(tool("bundle", "install", renamed, "--store", nowhere, *trusted), 4, "signed as manifest 'made', not 'prod'",
                "--as")
    run = tool("bundle", "install", renamed, "--store", folder / "as", *trusted, "--as", "prod")
    check(run.code == 0, "with a name of the user's", run)

    # What is not installed leaves what is there usable.
    document = json.loads(site.manifest.read_text())
    newer = folder / "newer"
    newer.mkdir()
    document["packs"][0]["sources"][0]["location"] = str(site.folder / "tree")
    bundles = []
    for serial in (1, 2):
        (newer / "made.json").write_text(json.dumps({**document, "serial": serial}))
        sign(newer / "made.json")
        bundles.append(folder / f"serial{serial}.zip")
        made = tool("bundle", "create", "--manifest", newer / "made.json", "--all", "-o", bundles[-1])
        check(made.code == 0, "create", made)
    kept = folder / "kept"
    strict = [*trusted, "--manifest-signatures", "refuse"]
    check(tool("bundle", "install", bundles[0], "--store", kept, *strict).code == 0, "the older one")
    check_fails(tool("bundle", "install", bundles[1], "--store", kept, *strict), 2, "another manifest is called 'made'")
    for run in ("is still the newest", "and again"):
        check(tool("bundle", "install", bundles[0], "--store", kept, *strict).code == 0, run)
    check(tool("bundle", "install", bundles[1], "--store", kept, *strict, "--replace").code == 0, "the newer one")
    check_fails(tool("bundle", "install", bundles[0], "--store", kept, *strict, "--replace"), 4, "2 was seen before")

    shipped = folder / "shipped.zip"
    made = tool("bundle", "create", "--manifest", "cubist-decode", "--all", "-o", shipped)
    check(made.code == 0, "create of a shipped one", made)
    check(tool("bundle", "install", shipped, "--store", folder / "same", *strict, CUBIST_MANIFESTS=None).code == 0,
          "a shipped manifest, which its name means")
    check_fails(tool("bundle", "install", shipped, "--store", nowhere, *strict, "--as", "mine", CUBIST_MANIFESTS=None), 4,
                "is not signed")

    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    check_fails(tool("bundle", "install", signed, "--store", folder / "open", *trusted, CUBIST_FOREIGN_STORE="refuse"), 4,
                "can be written by everybody")
    check(not stored(folder / "open"), "nothing was installed")
    warned = tool("bundle", "install", signed, "--store", folder / "open", *trusted)
    check(warned.code == 0 and "can be written by everybody" in warned.err, "or warned of", warned)

    revocations = folder / "revoked.json"
    revocations.write_text(json.dumps({"schema": "cubist.revocations", "schema_version": 1, "serial": 1, "entries": [
        {"sha256": sha256(KERNELS["kernel_3"]), "reason": "wrong results"}]}))
    sign(revocations)
    check_fails(tool("bundle", "install", signed, "--store", nowhere, *trusted, "--revocations", revocations), 4,
                "kernel_3", "wrong results", "leaves this kernel out")
    check_fails(site.create(folder / "r.zip", "--all", *trusted, "--revocations", revocations), 4, "kernel_3", "--kernel")
    check(not (nowhere / "sha256").exists() and not (nowhere / "manifests").exists(), "nothing was installed")


def check_fresh_machine(tool, folder):
    """Everything by name from a bundle of kernels that can be launched, in a namespace without a network."""
    shipped = json.loads(pathlib.Path(SOURCE, "manifests/cubist-decode.json").read_text())
    shipped["name"] = "site-decode"
    shipped["packs"][0]["sources"] = [{"type": "folder", "location": f"{SOURCE}/kernels/prebuilt"}]
    text = folder / "site-decode.json"
    text.write_text(json.dumps(shipped))
    (folder / "link.json").symlink_to(text)
    for output in (text, folder / "link.json"):
        check_fails(tool("bundle", "create", "--manifest", text, "--all", "-o", output), 2, f"'{output}'", "goes into the bundle")
    check(json.loads(text.read_text()) == shipped, "no input is written over")
    made = tool("bundle", "create", "--manifest", text, "--all", "-o", folder / "decode.zip")
    check(made.code == 0, "create", made)
    store = folder / "machine"
    machine = {"CUBIST_STORE": str(store)}
    problem = ["--device", "h200", "--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "128", "--batch", "4",
               "--max-kv-len", "1024", "--manifest", "site-decode"]
    commands = [["bundle", "inspect", folder / "decode.zip", "--verify", "--offline"],
                ["bundle", "install", folder / "decode.zip"],
                ["select", *problem], ["fetch", "--offline", "--manifest", "site-decode", "--all"],
                ["launch", "--dry-run", *problem], ["verify", "--manifest", "site-decode"],
                ["bundle", "create", "--offline", "--manifest", "site-decode", "--all", "-o", folder / "again.zip"]]
    no_network = ["unshare", "-n"] if subprocess.run(["unshare", "-n", "true"], check=False,
                                                     capture_output=True).returncode == 0 else []
    trace = shutil.which("strace")
    for command in commands:
        log = folder / "strace.log"
        prefix = no_network + ([trace, "-f", "-qq", "-e", "trace=socket,connect", "-o", str(log)] if trace else [])
        run = subprocess.run([*prefix, tool.program, *map(str, command)], capture_output=True, text=True, check=False,
                             env={**tool.environment, **machine}, cwd=folder)
        check(run.returncode == 0, f"{command}: {run.returncode} {run.stdout}{run.stderr}")
        if trace:
            calls = [line for line in log.read_text().splitlines() if "socket(" in line or "connect(" in line]
            check(not calls, f"{command} opened a socket: {calls[:3]}")
    ranges = ["--device", "h200", "--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "128", "--batch", "1..4",
              "--max-kv-len", "..64"]
    for command in (["list", "--manifest", "site-decode"], ["select", *problem], ["working-set", "-m", "site-decode", *ranges],
                    ["map", "site-decode", *ranges], ["launch", "--dry-run", *problem]):
        run = tool(*command, "--store", store)
        check(run.code == 0, f"{command[0]} --store finds what was installed there by name", run)
        check_fails(tool(*command), 2, "site-decode")
    check((folder / "again.zip").read_bytes() == (folder / "decode.zip").read_bytes(), "the bundle, made from its own store")
    print(f"sockets: looked at with {'strace' if trace else 'nothing'}, "
          f"{'in a network namespace' if no_network else 'no namespace'}")


def main():
    with tempfile.TemporaryDirectory(prefix="cubist-bundle-") as name:
        folder = pathlib.Path(name)
        tool = Tool(sys.argv[1], folder)
        site = Site(tool, folder / "site")
        for part in ("create", "licences", "names", "refused", "install", "fresh", "trust"):
            (folder / part).mkdir()
        check_create(tool, site, folder / "create")
        check_licences(tool, site, folder / "licences")
        good = check_reproducible(tool, site, folder)
        check_inspect(tool, good)
        check_install(tool, site, good, folder / "install")
        check_kept(tool, site, good, folder / "install")
        check_list_and_remove(tool, site, good, folder / "install")
        check_damaged_description(tool, site, good, folder / "install")
        check_aux(tool, site, folder / "install")
        check_names(tool, site, good, folder / "names")
        check_refused(tool, good, folder / "refused")
        check_fresh_machine(tool, folder / "fresh")
        check_trust(tool, site, folder / "trust")


main()
