"""manifests/schema.json accepts what is shipped and the example of FORMAT.md, and refuses broken ones.

Validates with a reader of the few keywords the schema uses; with the package jsonschema as well, where
that is installed. Usage: schema_test.py SOURCE_DIR
"""
import copy
import json
import pathlib
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def has_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def errors(schema, value, root):
    """Yields one text for each rule of the schema that the value breaks."""
    if "$ref" in schema:
        target = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        yield from errors(target, value, root)
    if "type" in schema and not has_type(value, schema["type"]):
        yield f"type {schema['type']}"
        return
    if "const" in schema and (value != schema["const"] or isinstance(value, bool)):
        yield "const"
    if "enum" in schema and (value not in schema["enum"] or isinstance(value, bool)):
        yield "enum"
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"pattern {schema['pattern']}"
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30):
            yield "length"
    if isinstance(value, int) and not isinstance(value, bool):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield "range"
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", 1 << 30):
            yield "maxItems"
        for item in value if "items" in schema else []:
            yield from errors(schema["items"], item, root)
    if isinstance(value, dict):
        yield from object_errors(schema, value, root)
    yield from combined_errors(schema, value, root)


def object_errors(schema, value, root):
    for key in schema.get("required", []):
        if key not in value:
            yield f"missing {key}"
    properties = schema.get("properties", {})
    for key, member in value.items():
        if key in properties:
            yield from errors(properties[key], member, root)
        elif schema.get("additionalProperties", True) is False:
            yield f"unknown {key}"


def combined_errors(schema, value, root):
    def holds(part):
        return next(errors(part, value, root), None) is None

    for part in schema.get("allOf", []):
        yield from errors(part, value, root)
    if "anyOf" in schema and not any(holds(part) for part in schema["anyOf"]):
        yield "anyOf"
    if "not" in schema and holds(schema["not"]):
        yield "not"
    if "if" in schema:
        branch = "then" if holds(schema["if"]) else "else"
        yield from errors(schema.get(branch, {}), value, root)


KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "pattern", "minLength",
         "maxLength", "minimum", "maximum", "maxItems", "items", "required", "properties",
         "additionalProperties", "allOf", "anyOf", "not", "if", "then", "else"}


def check_keywords(schema):
    """A keyword this test does not know would pass everything silently."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    for key in ("items", "not", "if", "then", "else"):
        if key in schema:
            check_keywords(schema[key])
    for key in ("$defs", "properties"):
        for part in schema.get(key, {}).values():
            check_keywords(part)
    for key in ("allOf", "anyOf"):
        for part in schema.get(key, []):
            check_keywords(part)


def pack(m):
    return m["packs"][0]


def kernel(m):
    return m["packs"][0]["kernels"][0]


def traits(m):
    return m["packs"][0]["kernels"][0]["traits"]


BREAKS = [
    lambda m: m.update(schema="other"),
    lambda m: m.update(schema_version=3),
    lambda m: m.update(schema_version=0),
    lambda m: (m.update(schema_version=1), pack(m).update(min_driver="12.8")),
    lambda m: pack(m).update(min_driver=12080),
    lambda m: pack(m).update(min_driver="12"),
    lambda m: pack(m).update(min_driver="012.8"),
    lambda m: pack(m).update(min_driver="12.80"),
    lambda m: pack(m).update(min_driver="26.0"),
    lambda m: m.update(schema_version=True),
    lambda m: m.pop("name"),
    lambda m: m.update(extra=1),
    lambda m: m.update(name="a b"),
    lambda m: m.update(description="a\x07"),
    lambda m: pack(m).pop("kernels"),
    lambda m: pack(m).update(family="x"),
    lambda m: pack(m).update(revision="x"),
    lambda m: pack(m)["sources"][0].update(type="ftp"),
    lambda m: pack(m)["sources"][0].update(location="ftp://x/"),
    lambda m: pack(m)["sources"][0].update(location="http://user@x/"),
    lambda m: pack(m)["sources"][0].update(location=""),
    lambda m: pack(m)["sources"][0].update(prefix="a"),
    lambda m: pack(m)["sources"][1].update(location="a>=1"),
    lambda m: kernel(m).pop("sha256"),
    lambda m: kernel(m).update(sha256=""),
    lambda m: kernel(m).update(sha256="0" * 64),
    lambda m: kernel(m).update(sha256="g" * 64),
    lambda m: kernel(m).update(size=0),
    lambda m: kernel(m).update(size=(1 << 30) + 1),
    lambda m: kernel(m).update(size="1"),
    lambda m: kernel(m).update(path="../x"),
    lambda m: kernel(m).update(path="a/../x"),
    lambda m: kernel(m).update(path="/x"),
    lambda m: kernel(m).update(path="a//x"),
    lambda m: kernel(m).update(path="a/"),
    lambda m: kernel(m).update(path="a\\x"),
    lambda m: kernel(m).update(arch="100f"),
    lambda m: traits(m).pop("threads"),
    lambda m: traits(m).pop("dtype_kv"),
    lambda m: traits(m).update(dtype_k="bf16"),
    lambda m: traits(m).update(dtype_q="fp8"),
    lambda m: traits(m).update(head_dim_qk=0),
    lambda m: traits(m).update(threads=1025),
    lambda m: traits(m).update(kernel_type="generation"),
    lambda m: traits(m).update(two_cta_mma=1),
    lambda m: traits(m).update(unknown=1),
]


def main(source_dir):
    folder = pathlib.Path(source_dir) / "manifests"
    schema = json.loads((folder / "schema.json").read_text())
    check_keywords(schema)
    validators = [lambda m: next(errors(schema, m, schema), None)]
    try:
        import jsonschema
        validator = jsonschema.Draft202012Validator(schema)
        validator.check_schema(schema)
        validators.append(lambda m: next((e.message for e in validator.iter_errors(m)), None))
    except ImportError:
        print("jsonschema is not installed: one validator only")

    example = json.loads(re.search(r"```json\n(.*?)```", (folder / "FORMAT.md").read_text(), re.S)[1])
    manifests = {"example": example}
    for path in sorted(folder.glob("*.json")):
        if path.name != "schema.json":
            manifests[path.name] = json.loads(path.read_text())
            # A few kernels of each pack show the form; the readers' tests read them all.
            for one in manifests[path.name]["packs"]:
                one["kernels"] = one["kernels"][:: max(1, len(one["kernels"]) // 50)]
    for validate in validators:
        for name, manifest in manifests.items():
            assert validate(manifest) is None, f"{name}: {validate(manifest)}"
        for index, apply in enumerate(BREAKS):
            broken = copy.deepcopy(example)
            apply(broken)
            assert validate(broken) is not None, f"break {index} is accepted"
    print(f"{len(manifests)} accepted, {len(BREAKS)} refused, by {len(validators)} validators")


main(sys.argv[1])
