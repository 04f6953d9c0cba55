#include "presets/device_preset.h"

#include <cctype>

#include "document/document.h"
#include "document/json_text.h"

// { "schema": "cubist.devices", "schema_version": 1,
//   "devices": [ { "name", "aliases": [..], "sm", "num_sms", "max_smem_optin",
//                  "max_active_clusters": { "<cluster size>": clusters }, "l2_bytes",
//                  "memory_bytes", "memory_gb_per_s", "host", "sources": [..], "unsure": [..] } ] }

namespace cubist::presets {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

void read_clusters(const DocumentNode& node, DeviceProfile& profile) {
  if (node.present() && !node.is_object()) node.complain("expected an object");
  for (const std::string& key : node.keys()) {
    std::size_t size = 0;
    for (const char digit : key.substr(0, 3)) {
      if (std::isdigit(static_cast<unsigned char>(digit)) == 0) size = 1000;
      size = size * 10 + static_cast<std::size_t>(digit - '0');
    }
    if (size < 2 || size >= profile.max_active_clusters.size()) {
      node.complain(fmt::format("{} is no cluster size; allowed are 2..16", in_quotes(key)));
      return;
    }
    node.member(key).read_integer(profile.max_active_clusters[size], 0, 65535);
  }
}

DevicePreset read_device(const DocumentNode& node, std::string_view file_name) {
  DevicePreset device;
  device.file = file_name;
  node.allow_only({"name", "aliases", "sm", "num_sms", "max_smem_optin", "max_active_clusters",
                   "l2_bytes", "memory_bytes", "memory_gb_per_s", "host", "sources", "unsure"});
  DeviceProfile& profile = device.profile;
  node.required("name").read(profile.name);
  node.member("aliases").read_strings(device.aliases);
  std::int32_t number = 0;
  if (node.required("sm").read_integer(number, 10, 999)) {
    profile.sm = static_cast<std::uint32_t>(number);
  }
  node.required("num_sms").read_integer(profile.num_sms, 1, 65535);
  if (node.required("max_smem_optin").read_integer(number, 1, 1 << 20)) {
    profile.max_smem_optin = static_cast<std::uint32_t>(number);
  }
  read_clusters(node.member("max_active_clusters"), profile);
  node.member("l2_bytes").read_integer(device.l2_bytes, 1, kMaxBytes);
  node.member("memory_bytes").read_integer(device.memory_bytes, 1, kMaxBytes);
  node.member("memory_gb_per_s").read_integer(device.memory_gb_per_s, 1, 1000000);
  node.member("host").read(device.host);
  node.member("sources").read_strings(device.sources);
  node.member("unsure").read_strings(device.unsure);
  if (profile.name.empty()) node.complain("name is empty; give it one");
  return device;
}

}  // namespace

Result<std::vector<DevicePreset>> parse_device_presets(std::string_view text,
                                                       std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  root.allow_only({"schema", "schema_version", "devices"});
  std::string schema;
  if (root.required("schema").read(schema) && schema != "cubist.devices") {
    root.member("schema").complain(
        fmt::format("is {}; a file of devices says cubist.devices", in_quotes(schema)));
  }
  std::int32_t version = 0;
  root.required("schema_version").read_integer(version, 1, 1);
  std::vector<DevicePreset> devices;
  for (const DocumentNode& item : root.required("devices").items()) {
    devices.push_back(read_device(item, file_name));
  }
  CUBIST_RETURN_IF_ERROR(document.status());
  return devices;
}

}  // namespace cubist::presets
