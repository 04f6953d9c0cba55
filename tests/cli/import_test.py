#!/usr/bin/env python3
"""`cubist import flashinfer` from outside, on a small release made here.

    import_test.py TOOL
"""
import http.server
import json
import pathlib
import random
import re
import sys
import tempfile
import threading
import zipfile

from cli import Tool, check, check_fails, sha256

ROOT = "flashinfer_cubin/cubins/" + "7" * 40 + "/fmha/trtllm-gen/"
BF16 = "DATA_TYPE_BF16"
COLUMNS = {"mDataTypeQ": BF16, "mDataTypeKv": BF16, "mDataTypeO": BF16, "mTileSizeQ": 16, "mTileSizeKv": 128,
           "mStepQ": 16, "mStepKv": 256, "mHeadDimPerCtaV": 64, "mHeadDimQk": 64, "mHeadDimV": 64,
           "mSM": "kSM_100f", "mCubin": "nullptr", "mCubinSize": 0, "mFuncName": None, "mSharedMemBytes": 40000,
           "mThreadsPerCTA": 512, "mQkvLayout": 2, "mNumTokensPerPage": 32, "mMaskType": 1, "mKernelType": 2,
           "mMaxNumHeadsQPerKvInCta": 8, "mTileScheduler": 0, "mMultiCtasKvMode": 1, "mGroupsHeadsQ": "true",
           "mReuseSmemKForV": "false", "m2CtaMma": "false", "sha256": None}


class Release:
    def __init__(self):
        self.files = {f"kernel{i}.cubin": f"\x7fELF kernel {i}" for i in range(3)}
        self.columns, self.rows, self.again = dict(COLUMNS), {}, []

    def tree(self):
        columns = list(self.columns)
        header = "struct TllmGenFmhaKernelMetaInfo\n{\n" + "".join(f"    int {name};\n" for name in columns) + "};\n"
        header += "static const TllmGenFmhaKernelMetaInfo sTllmGenFmhaKernelMetaInfos[] = {\n"
        for file in [*self.files, *self.again]:
            text = self.files[file]
            row = {**self.columns, "mFuncName": f'"{file[:-6]}"', "sha256": f'"{sha256(text)}"',
                   **self.rows.get(file, {})}
            header += "{ " + ", ".join(str(row[name]) for name in columns) + "},\n"
        header += "};\n"
        files = {**self.files, "include/flashInferMetaInfo.h": header}
        sums = "".join(f"{sha256(text)}  {name}\n" for name, text in files.items())
        return {ROOT + name: text for name, text in {**files, "checksums.txt": sums}.items()}

    def folder(self, place):
        for name, text in self.tree().items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        return place

    def wheel(self, place):
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in self.tree().items():
                archive.writestr(name, text)
        return place


def check_import(tool, folder):
    wheel = Release().wheel(folder / "flashinfer_cubin-0.4.1-py3-none-any.whl")
    run = tool("import", "flashinfer", wheel, "-o", folder / "m.json")
    check(run.code == 0 and "3 kernels, no disagreement" in run.out and "revision none" in run.out, "a wheel", run)
    check(tool("manifest", "validate", folder / "m.json").code == 0, "what import writes is valid")
    listed = tool("list", "--manifest", folder / "m.json", "--names")
    check(listed.out.split() == ["kernel0", "kernel1", "kernel2"], "every kernel", listed)
    tree = Release().folder(folder / "tree")
    report = tool("import", "flashinfer", tree, "--json").json()
    check(report["kernels"] == 3 and report["output"] is None and report["disagreements"] == 0, "a folder")
    check(report["tables"][0]["columns"] == 27, "as JSON, with each table")
    written = tool("import", "flashinfer", tree, "-o", "-")
    check(len(json.loads(written.out)["packs"][0]["kernels"]) == 3, "- is standard output", written)
    check(tool("fetch", "--manifest", folder / "m.json", "--all", "--json").code == 0, "its source is the wheel")
    check(tool("verify", "--manifest", folder / "m.json").code == 0, "what was fetched is what the manifest says")
    check_fails(tool("verify", "--manifest", folder / "m.json", "--deep"), 4, "has the very bytes that its digest names")


class RangeHandler(http.server.BaseHTTPRequestHandler):
    """Serves one file by ranges and counts the bytes it gave."""
    data, given = b"", 0

    def do_GET(self):
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        first, last = 0, len(self.data) - 1
        if found and found[1]:
            first, last = int(found[1]), min(int(found[2] or last), last)
        elif found:
            first = max(0, len(self.data) - int(found[2]))
        part = self.data[first:last + 1]
        self.send_response(206 if found else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.data)}")
        self.end_headers()
        type(self).given += len(part)
        self.wfile.write(part)

    def log_message(self, *_):
        pass


def check_remote(tool, folder):
    release = Release()
    release.files["ballast.cubin"] = "\x7fELF" + random.Random(1).randbytes(1 << 20).hex()
    wheel = release.wheel(folder / "flashinfer_cubin-0.4.1-py3-none-any.whl")
    RangeHandler.data = wheel.read_bytes()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RangeHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/{wheel.name}"
    local, remote = (tool("import", "flashinfer", source, "-o", folder / name, "--json")
                     for source, name in ((wheel, "local.json"), (url, "remote.json")))
    check(remote.code == 0 and remote.json()["kernels"] == 4, "a URL", remote)
    check(local.json()["counts"] == remote.json()["counts"], "says what the file says")
    check(RangeHandler.given < len(RangeHandler.data) // 2, f"by ranges, {RangeHandler.given} bytes")
    check(tool("fetch", "--manifest", folder / "remote.json", "--kernel", "kernel1").code == 0, "and its kernels")
    server.shutdown()
    server.server_close()
    check_fails(tool("import", "flashinfer", url), 5, "127.0.0.1")
    if not tool("doctor", "--json").json()["pip"]["found"]:
        print("no pip here: pip: not checked")
        return
    found = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
    run = tool("import", "flashinfer", "pip:flashinfer-cubin==0.4.1", "--json", **found)
    check(run.code == 0 and run.json()["kernels"] == 4, "pip: finds what pip finds", run)
    check_fails(tool("import", "flashinfer", "pip:flashinfer-cubin==0.4.2", **found), 2, "0.4.2")


def check_columns(tool, folder):
    newer = Release()
    newer.columns = {**COLUMNS, "mSparseMla": "false", "mColour": 3}
    run = tool("import", "flashinfer", newer.folder(folder / "newer"), "-o", folder / "newer.json")
    check_fails(run, 8, "flashInferMetaInfo.h", "mColour", "column")
    check(not (folder / "newer.json").exists(), "nothing was written")
    error = tool("import", "flashinfer", folder / "newer", "--json").json()["error"]
    check(error["exit_code"] == 8 and "mColour" in error["message"], "--json has the error")
    missing = Release()
    del missing.columns["mSharedMemBytes"]
    check_fails(tool("import", "flashinfer", missing.folder(folder / "missing")), 8, "mSharedMemBytes")


def check_disagreements(tool, folder):
    release = Release()
    release.rows["kernel1.cubin"] = {"sha256": '"' + "1" * 64 + '"'}
    release.rows["kernel2.cubin"] = {"mSharedMemBytes": 300000}
    release.again = ["kernel0.cubin"]
    tree = release.folder(folder / "lint")
    (tree / ROOT / "extra.cubin").write_text("x")
    (tree / ROOT / "kernel0.cubin.lock").write_text("")
    run = tool("import", "flashinfer", tree, "--json", "-o", folder / "lint.json")
    counts = run.json()["counts"]
    check(run.code == 0 and counts == {"file_without_row": 1, "digest_mismatch": 1, "duplicate_row": 1,
                                       "unlaunchable": 1, "stray_file": 1}, f"counts {counts}", run)
    subjects = {f["kind"]: f["subject"] for f in run.json()["findings"]}
    check(subjects["stray_file"].endswith("kernel0.cubin.lock"), "each finding has its subject")
    check(subjects["digest_mismatch"] == "kernel1", "the kernel in doubt is named")
    check(run.json()["kernels"] == 2, "and left out")
    (folder / "lint.json").unlink()
    strict = tool("import", "flashinfer", tree, "--strict", "-o", folder / "lint.json")
    check_fails(strict, 8, "3 disagreements and --strict", "lint.json")
    check(not (folder / "lint.json").exists(), "--strict writes nothing")


def check_refusals(tool, folder):
    (folder / "empty").mkdir()
    (folder / "no.whl").write_text("no zip")
    wheel = Release().wheel(folder / "good.whl")
    torn = folder / "torn.whl"
    torn.write_bytes(wheel.read_bytes()[:-30])
    for arguments, code, words in [
            ([folder / "empty"], 2, ["empty"]), ([folder / "none.whl"], 2, ["none.whl"]),
            ([folder / "no.whl"], 4, ["no.whl"]), ([torn], 4, ["torn.whl"]),
            (["pip:flashinfer-cubin"], 2, ["=="]),
            ([wheel, "--revision", "newest"], 2, ["--revision newest", "trtllm-gen-fmha-0.6.13"]),
            ([wheel, "-o", folder / "none/m.json"], 6, ["none/m.json"])]:
        check_fails(tool("import", "flashinfer", *arguments), code, *words)
    check(tool("import", "flashinfer").code == 2 and tool("import").code == 2, "usage errors")
    check(tool("import", "flashinfer", "--help").code == 0, "--help")


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        tool = Tool(program, folder)
        for part in (check_import, check_remote, check_columns, check_disagreements, check_refusals):
            part(tool, folder)


main(sys.argv[1])
