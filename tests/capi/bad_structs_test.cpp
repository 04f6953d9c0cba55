// Every field of the other structs that a caller fills: options, scales to fuse, what to prepare,
// an output's layout. Each wrong value is refused by name and nothing is done; no field is left
// out.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "covered.h"
#include "rig.h"

namespace {

using Catch::Matchers::Contains;
using cubist::test::check_covered;
using cubist::test::CRig;
using cubist::test::Extent;
using cubist::test::fake_cuda;
using cubist::test::Scratch;

const float kNan = std::nanf("");
const float kInf = INFINITY;
const char* const kOneNull[] = {nullptr};
const char* const kOneEmpty[] = {""};
const char* const kNonsense[] = {"nonsense"};

/// One wrong value of a field.
template <class Struct>
struct Wrong {
  Extent field;
  std::string phrase;  ///< of the message
  std::function<void(Struct&)> set;
  cubist_status status = CUBIST_STATUS_INVALID_ARGUMENT;
};

#define FIELD(member) \
  Extent { offsetof(Struct, member), sizeof(Struct::member) }
#define SET(member, value) [](Struct& s) { s.member = value; }
/// A list and how many it has.
#define SET_LIST(member, list, count) \
  [](Struct& s) {                     \
    s.member = list;                  \
    s.num_##member = count;           \
  }

template <class Struct>
std::vector<Extent> fields_of(const std::vector<Wrong<Struct>>& table) {
  std::vector<Extent> fields;
  for (const Wrong<Struct>& wrong : table) fields.push_back(wrong.field);
  return fields;
}

std::vector<Wrong<cubist_runtime_options>> wrong_options() {
  using Struct = cubist_runtime_options;
  return {
      {FIELD(offline), "options.offline is 2", SET(offline, 2)},
      {FIELD(offline), "options.offline is -1", SET(offline, -1)},
      {FIELD(manifests), "options.manifests is NULL", SET(manifests, nullptr)},
      {FIELD(manifests), "options.manifests[0] is NULL", SET_LIST(manifests, kOneNull, 1)},
      {FIELD(manifests), "a manifest's name is empty", SET_LIST(manifests, kOneEmpty, 1)},
      {FIELD(manifests), "'nonsense'", SET_LIST(manifests, kNonsense, 1), CUBIST_STATUS_NOT_FOUND},
      {FIELD(num_manifests), "num_manifests is 0", SET(num_manifests, 0)},
      {FIELD(strict), "options.strict is 7", SET(strict, 7)},
      {FIELD(store_dir), "options.store_dir is empty", SET(store_dir, "")},
      {FIELD(trusted_keys), "options.trusted_keys[0] is NULL", SET_LIST(trusted_keys, kOneNull, 1)},
      {FIELD(trusted_keys), "nonsense", SET_LIST(trusted_keys, kNonsense, 1)},
      {FIELD(trusted_keys), "trusted_keys: not", SET_LIST(trusted_keys, kOneEmpty, 1)},
      {FIELD(num_trusted_keys), "options.trusted_keys is NULL and num_trusted_keys is 3",
       SET(num_trusted_keys, 3)},
      {FIELD(key_statements), "options.key_statements[0] is NULL",
       SET_LIST(key_statements, kOneNull, 1)},
      {FIELD(key_statements), "key", SET_LIST(key_statements, kNonsense, 1)},
      {FIELD(num_key_statements), "options.key_statements is NULL and num_key_statements is 1",
       SET(num_key_statements, 1)},
      {FIELD(revocations), "options.revocations[0] is NULL", SET_LIST(revocations, kOneNull, 1)},
      {FIELD(revocations), "key", SET_LIST(revocations, kNonsense, 1)},
      {FIELD(num_revocations), "options.revocations is NULL and num_revocations is 4294967295",
       SET(num_revocations, UINT32_MAX)},
      {FIELD(manifest_signatures), "options.manifest_signatures is 4", SET(manifest_signatures, 4)},
      {FIELD(manifest_signatures), "options.manifest_signatures is -1",
       SET(manifest_signatures, -1)},
      {FIELD(foreign_store), "options.foreign_store is 4", SET(foreign_store, 4)},
      {FIELD(overrides), "options.overrides is empty", SET(overrides, "")},
      {FIELD(overrides), "/no/such/rules.json", SET(overrides, "/no/such/rules.json"),
       CUBIST_STATUS_NOT_FOUND},
      {FIELD(overrides), "README.md", SET(overrides, CUBIST_SOURCE_DIR "/README.md")},
      {FIELD(accept_older_serial), "options.accept_older_serial is 2", SET(accept_older_serial, 2)},
  };
}

float scalars[8] = {1, 1, 1, 1, 1, 7, 7, 7};

/// An address that is off by `by` bytes.
template <class T>
T* off(T* address, std::ptrdiff_t by) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address) +
                              static_cast<std::uintptr_t>(by));
}

std::vector<Wrong<cubist_scales>> wrong_scales() {
  using Struct = cubist_scales;
  return {
      {FIELD(q_scale), "q_scale is 0", SET(q_scale, 0)},
      {FIELD(k_scale), "k_scale is 2", SET(k_scale, 2)},
      {FIELD(v_scale), "v_scale is nan", SET(v_scale, kNan)},
      {FIELD(sm_scale), "sm_scale is inf", SET(sm_scale, kInf)},
      {FIELD(o_scale), "o_scale is 0", SET(o_scale, 0)},
      {FIELD(q_scale_device), "q_scale is 0x", SET(q_scale_device, off(scalars, 1))},
      {FIELD(k_scale_device), "k_scale is a device scalar", SET(k_scale_device, scalars)},
      {FIELD(v_scale_device), "v_scale is a device scalar", SET(v_scale_device, scalars)},
      {FIELD(sm_scale_device), "sm_scale is 0x", SET(sm_scale_device, off(scalars, 2))},
      {FIELD(sm_scale_device), "both sm_scale",
       [](Struct& s) {
         s.sm_scale_device = scalars;
         s.sm_scale = 0.5F;
       }},
      {FIELD(o_scale_device), "both o_scale",
       [](Struct& s) {
         s.o_scale_device = scalars;
         s.o_scale = 0.5F;
       }},
      {FIELD(out_bmm1_scale_log2), "bmm1_scale_log2 is 0x0", SET(out_bmm1_scale_log2, nullptr)},
      {FIELD(out_bmm2_scale), "bmm2_scale is 0x", SET(out_bmm2_scale, off(scalars + 6, 1))},
  };
}

cubist_selection* no_selections[] = {nullptr};

std::vector<Wrong<cubist_prepare_options>> wrong_prepare_options() {
  using Struct = cubist_prepare_options;
  return {
      {FIELD(kernels), "'nonsense'", SET_LIST(kernels, kNonsense, 1), CUBIST_STATUS_NOT_FOUND},
      {FIELD(kernels), "options.kernels[0] is NULL", SET_LIST(kernels, kOneNull, 1)},
      {FIELD(kernels), "options.kernels is not NULL, but num_kernels is 0",
       SET(kernels, kNonsense)},
      {FIELD(num_kernels), "options.kernels is NULL, but num_kernels is 4294967295",
       SET(num_kernels, UINT32_MAX)},
      {FIELD(selections), "options.selections[0]", SET_LIST(selections, no_selections, 1)},
      {FIELD(selections), "options.selections is not NULL, but num_selections is 0",
       SET(selections, no_selections)},
      {FIELD(num_selections), "options.selections is NULL, but num_selections is 2",
       SET(num_selections, 2)},
      {FIELD(working_set), "/no/such/set.json", SET(working_set, "/no/such/set.json"),
       CUBIST_STATUS_NOT_FOUND},
      {FIELD(working_set), "README.md", SET(working_set, CUBIST_SOURCE_DIR "/README.md")},
  };
}

std::vector<Wrong<cubist_tensor_layout>> wrong_layouts() {
  using Struct = cubist_tensor_layout;
  return {
      {FIELD(struct_size), "o_layout.struct_size", SET(struct_size, 9)},
      {FIELD(dtype), "o_layout.dtype is -1", SET(dtype, -1)},
      {FIELD(dtype), "fp16", SET(dtype, CUBIST_DTYPE_FP16)},
      {FIELD(rank), "o_layout.rank is 0", SET(rank, 0)},
      {FIELD(rank), "o_layout.rank is 5", SET(rank, 5)},
      {FIELD(reserved), "o_layout.reserved is 1", SET(reserved, 1)},
      {FIELD(shape), "[3, 8, 64]", SET(shape[0], 3)},
      {FIELD(shape), "[4, -8, 64]", SET(shape[1], -8)},
      {FIELD(strides), "strides [512, 64, 2]", SET(strides[2], 2)},
      {FIELD(strides), "o_stride_tokens is -512", SET(strides[0], -512)},
  };
}

/// Structs that a caller fills: here, or in bad_input_test.cpp.
const std::set<std::string> kFilledByCallers = {
    "cubist_runtime_options", "cubist_scales", "cubist_prepare_options",
    "cubist_tensor_layout",   "cubist_device", "cubist_attention_problem",
    "cubist_attention_args",
};
/// Of which a caller fills struct_size at most; refusals_test.cpp has wrong ones.
const std::set<std::string> kFilledByTheLibrary = {
    "cubist_runtime_info",      "cubist_fetch_progress",  "cubist_plan_info",
    "cubist_workspace_info",    "cubist_prepared_kernel", "cubist_prepare_report",
    "cubist_output_scale_info",
};

}  // namespace

TEST_CASE("every struct of the header is in a table of wrong values, or filled by the library") {
  std::ifstream file(CUBIST_SOURCE_DIR "/include/cubist/cubist.h");
  std::stringstream text;
  text << file.rdbuf();
  const std::string header = text.str();
  const std::regex definition("typedef struct (cubist_\\w+) \\{");
  std::set<std::string> found;
  for (std::sregex_iterator at(header.begin(), header.end(), definition), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  std::set<std::string> known = kFilledByCallers;
  known.insert(kFilledByTheLibrary.begin(), kFilledByTheLibrary.end());
  CHECK(found == known);
}

TEST_CASE("each wrong value of a runtime's options is refused by name, and no store is made") {
  const std::vector<Wrong<cubist_runtime_options>> table = wrong_options();
  check_covered<cubist_runtime_options>(fields_of(table));
  const Scratch scratch;
  const std::string store = scratch.path() + "/store";
  const char* manifests[] = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json"};
  for (const auto& wrong : table) {
    cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
    options.manifests = manifests;
    options.num_manifests = 1;
    options.store_dir = store.c_str();
    wrong.set(options);
    auto* runtime = reinterpret_cast<cubist_runtime*>(8);
    INFO(wrong.phrase << ": " << cubist_last_error_message());
    const cubist_status status = cubist_runtime_open(&options, &runtime);
    const std::string message = cubist_last_error_message();
    CHECK(status == wrong.status);
    CHECK_THAT(message, Contains(wrong.phrase));
    CHECK(runtime == nullptr);
    CHECK_FALSE(std::filesystem::exists(store));
  }
  std::printf("%zu wrong options refused\n", table.size());
}

TEST_CASE("each wrong value of the scales to fuse is refused by name, and nothing is written") {
  const std::vector<Wrong<cubist_scales>> table = wrong_scales();
  check_covered<cubist_scales>(fields_of(table));
  CRig rig;
  for (const auto& wrong : table) {
    cubist_scales scales = CUBIST_SCALES_INIT;
    scales.out_bmm1_scale_log2 = scalars + 5;
    scales.out_bmm2_scale = scalars + 6;
    wrong.set(scales);
    INFO(wrong.phrase);
    CHECK(cubist_scales_fuse(rig.runtime, &rig.problem, &scales, nullptr) == wrong.status);
    CHECK_THAT(std::string(cubist_last_error_message()), Contains(wrong.phrase));
  }
  CHECK(scalars[5] == 7);
  CHECK(scalars[6] == 7);
  CHECK(fake_cuda().launches().empty());
  std::printf("%zu wrong scales refused\n", table.size());
}

TEST_CASE("each wrong value of what to prepare is refused by name, and nothing is loaded") {
  const std::vector<Wrong<cubist_prepare_options>> table = wrong_prepare_options();
  std::vector<Extent> fields = fields_of(table);
  // Any number of threads, any function and any user data are right.
  using Struct = cubist_prepare_options;
  fields.insert(fields.end(), {FIELD(num_threads), FIELD(on_kernel), FIELD(user_data)});
  check_covered<cubist_prepare_options>(fields);
  CRig rig;
  CRig other;
  for (const auto& wrong : table) {
    cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
    wrong.set(options);
    INFO(wrong.phrase);
    CHECK(cubist_runtime_prepare(rig.runtime, &options, nullptr) == wrong.status);
    CHECK_THAT(std::string(cubist_last_error_message()), Contains(wrong.phrase));
  }
  cubist_selection* foreign[] = {other.selection};
  cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
  options.selections = foreign;
  options.num_selections = 1;
  CHECK(cubist_runtime_prepare(rig.runtime, &options, nullptr) == CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK_THAT(std::string(cubist_last_error_message()), Contains("another runtime"));
  CHECK(fake_cuda().count("cuModuleLoadData") == 0);
  std::printf("%zu wrong prepare options refused\n", table.size() + 1);
}

TEST_CASE("each wrong layout of the output is refused, and nothing is written") {
  const std::vector<Wrong<cubist_tensor_layout>> table = wrong_layouts();
  check_covered<cubist_tensor_layout>(fields_of(table));
  CRig rig;
  cubist_tensor_layout right = CUBIST_TENSOR_LAYOUT_INIT;
  REQUIRE(cubist_selection_get_output(rig.selection, &right) == CUBIST_STATUS_OK);
  CHECK(right.rank == 3);
  CHECK(right.shape[0] == 4);
  for (const auto& wrong : table) {
    cubist_tensor_layout layout = right;
    wrong.set(layout);
    rig.args.o_layout = &layout;
    INFO(wrong.phrase);
    CHECK(cubist_selection_launch(rig.selection, &rig.args, nullptr) == wrong.status);
    CHECK_THAT(std::string(cubist_last_error_message()), Contains(wrong.phrase));
  }
  CHECK(rig.output_is_untouched());
  rig.args.o_layout = &right;
  CHECK(cubist_selection_launch(rig.selection, &rig.args, nullptr) == CUBIST_STATUS_OK);
  std::printf("%zu wrong layouts refused\n", table.size());
}
