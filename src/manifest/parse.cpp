#include "manifest/parse.h"

#include <array>
#include <optional>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hex.h"
#include "manifest/text.h"
#include "manifest/trait_fields.h"
#include "manifest/validate.h"
#include "manifest/words.h"

// { "schema": "cubist.manifest", "schema_version": 1, "name", "description",
//   "packs": [ { "name", "version", "license", "family", "revision", "param_layout",
//                "sources": [ { "type", "location", "prefix" } ],
//                "kernels": [ { "name", "path", "sha256", "size", "arch",
//                               "traits": { see trait_fields.cpp } } ] } ] }
//
// Read in one pass: nlohmann's parser hands over events, which go straight into the structs. No
// tree is built, and no depth beyond the five levels above is ever entered.

namespace cubist {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 5> kRootKeys = {"schema", "schema_version", "name",
                                                       "description", "packs"};
constexpr std::array<std::string_view, 8> kPackKeys = {
    "name", "version", "license", "family", "revision", "param_layout", "sources", "kernels"};
constexpr std::array<std::string_view, 3> kSourceKeys = {"type", "location", "prefix"};
constexpr std::array<std::string_view, 6> kKernelKeys = {"name", "path", "sha256",
                                                         "size", "arch", "traits"};
constexpr std::array<std::string_view, 4> kSourceTypes = {"http", "folder", "zip", "pip"};

const TraitSet kDtypeKvBit = trait_bit("dtype_kv");
const TraitSet kDtypeKOrVBits = trait_bit("dtype_k") | trait_bit("dtype_v");

/// What a level of the document is waiting for.
enum class Place { kDocument, kRoot, kPacks, kPack, kSources, kSource, kKernels, kKernel, kTraits };

/// A JSON value that is neither object nor array.
struct Scalar {
  enum class Type { kNull, kBool, kUnsigned, kNegative, kFloat, kString };
  Type type = Type::kNull;
  bool boolean = false;
  std::uint64_t number = 0;
  std::string* text = nullptr;  ///< may be moved from
};

std::string_view type_name(Scalar::Type type) {
  switch (type) {
    case Scalar::Type::kNull:
      return "null";
    case Scalar::Type::kBool:
      return "true or false";
    case Scalar::Type::kUnsigned:
      return "a number";
    case Scalar::Type::kNegative:
      return "a negative number";
    case Scalar::Type::kFloat:
      return "a number with a fraction or exponent";
    case Scalar::Type::kString:
      return "a string";
  }
  return "something else";
}

/// The keys of one object: which there are, which were seen, which is being read.
struct ObjectState {
  std::uint64_t seen = 0;
  std::size_t field = 0;
};

class ManifestReader {
 public:
  explicit ManifestReader(std::string_view file_name) : file_name_(file_name) {}

  Manifest take_manifest() { return std::move(manifest_); }
  Error take_error() { return std::move(*error_); }

  // The events of nlohmann's SAX interface; false stops the parser.
  bool null() { return scalar({}); }
  bool boolean(bool value) { return scalar({.type = Scalar::Type::kBool, .boolean = value}); }
  bool number_integer(std::int64_t) { return scalar({.type = Scalar::Type::kNegative}); }
  bool number_unsigned(std::uint64_t value) {
    return scalar({.type = Scalar::Type::kUnsigned, .number = value});
  }
  bool number_float(double, const std::string&) { return scalar({.type = Scalar::Type::kFloat}); }
  bool string(std::string& value) {
    return scalar({.type = Scalar::Type::kString, .text = &value});
  }
  bool binary(Json::binary_t&) { return false; }  // text has none
  bool key(std::string& name);
  bool start_object(std::size_t);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error);

 private:
  Pack& pack() { return manifest_.packs.back(); }
  KernelRecord& kernel() { return pack().kernels.back(); }

  template <class... Args>
  bool reject(fmt::format_string<Args...> text, Args&&... args) {
    return reject_at(pointer(true), fmt::format(text, std::forward<Args>(args)...));
  }
  bool reject_at(std::string_view pointer, std::string_view message);
  std::string pointer(bool with_key) const;
  std::string_view current_key() const;
  bool reject_type(std::string_view found);
  std::string_view expected_type() const;

  template <std::size_t N>
  bool find_key(const std::array<std::string_view, N>& keys, ObjectState& state,
                std::string_view name);
  bool trait_key(std::string_view name);
  bool enter_key(ObjectState& state, std::size_t field, std::string_view name);
  bool unknown_key(std::string_view name, const std::string& known);
  template <std::size_t N>
  bool require(const std::array<std::string_view, N>& keys, std::uint32_t needed,
               const ObjectState& state);

  bool scalar(Scalar value);
  bool root_value(Scalar value);
  bool pack_value(Scalar value);
  bool source_value(Scalar value);
  bool kernel_value(Scalar value);
  bool trait_value(const Scalar& value);
  bool end_kernel();
  bool end_traits();

  bool read_text(Scalar value, std::string& out);
  template <class Enum>
  bool read_word(const Scalar& value, Enum& out);
  template <class Number>
  bool read_number(const Scalar& value, std::uint64_t min, std::uint64_t max, Number& out);

  std::string_view file_name_;
  Manifest manifest_;
  std::optional<Error> error_;
  Place place_ = Place::kDocument;
  ObjectState root_;
  ObjectState pack_;
  ObjectState item_;  // a source or a kernel
  ObjectState traits_;
};

bool ManifestReader::reject_at(std::string_view pointer, std::string_view message) {
  error_ = Error(
      StatusCode::kManifestInvalid,
      fmt::format("{}: {}: {}", file_name_, pointer.empty() ? "(document)" : pointer, message));
  return false;
}

std::string_view ManifestReader::current_key() const {
  switch (place_) {
    case Place::kRoot:
      return kRootKeys[root_.field];
    case Place::kPack:
      return kPackKeys[pack_.field];
    case Place::kSource:
      return kSourceKeys[item_.field];
    case Place::kKernel:
      return kKernelKeys[item_.field];
    case Place::kTraits:
      return trait_fields()[traits_.field].key;
    default:
      return {};
  }
}

std::string ManifestReader::pointer(bool with_key) const {
  std::string out;
  if (place_ >= Place::kPacks) out = "/packs";
  const bool in_list =
      place_ == Place::kPacks || place_ == Place::kSources || place_ == Place::kKernels;
  const std::size_t packs = manifest_.packs.size();
  if (place_ == Place::kPacks) {
    out += fmt::format("/{}", packs);
  } else if (place_ > Place::kPacks) {
    const Pack& last = manifest_.packs.back();
    out += fmt::format("/{}", packs - 1);
    if (place_ == Place::kSources) out += fmt::format("/sources/{}", last.sources.size());
    if (place_ == Place::kSource) out += fmt::format("/sources/{}", last.sources.size() - 1);
    if (place_ == Place::kKernels) out += fmt::format("/kernels/{}", last.kernels.size());
    if (place_ >= Place::kKernel) out += fmt::format("/kernels/{}", last.kernels.size() - 1);
    if (place_ == Place::kTraits) out += "/traits";
  }
  if (with_key && !in_list && place_ != Place::kDocument) out += fmt::format("/{}", current_key());
  return out;
}

std::string_view ManifestReader::expected_type() const {
  switch (place_) {
    case Place::kDocument:
    case Place::kPacks:
    case Place::kSources:
    case Place::kKernels:
      return "an object";
    case Place::kRoot:
      if (current_key() == "packs") return "an array";
      return current_key() == "schema_version" ? "a whole number" : "a string";
    case Place::kPack:
      return current_key() == "sources" || current_key() == "kernels" ? "an array" : "a string";
    case Place::kSource:
      return "a string";
    case Place::kKernel:
      if (current_key() == "traits") return "an object";
      return current_key() == "size" ? "a whole number" : "a string";
    case Place::kTraits:
      break;
  }
  const TraitField& field = trait_fields()[traits_.field];
  if (field.max != 0) return "a whole number";
  return std::holds_alternative<bool KernelTraits::*>(field.member) ? "true or false" : "a string";
}

bool ManifestReader::reject_type(std::string_view found) {
  return reject("found {}, expected {}", found, expected_type());
}

bool ManifestReader::enter_key(ObjectState& state, std::size_t field, std::string_view name) {
  const std::uint64_t bit = std::uint64_t{1} << field;
  if (state.seen & bit) {
    return reject_at(pointer(false) + "/" + std::string(name), "the key occurs twice");
  }
  state.seen |= bit;
  state.field = field;
  return true;
}

bool ManifestReader::unknown_key(std::string_view name, const std::string& known) {
  return reject_at(pointer(false) + "/" + pointer_step(name),
                   fmt::format("unknown key {}; known here are {}", shown(name), known));
}

template <std::size_t N>
bool ManifestReader::find_key(const std::array<std::string_view, N>& keys, ObjectState& state,
                              std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (keys[i] == name) return enter_key(state, i, name);
  }
  return unknown_key(name, fmt::format("{}", fmt::join(keys, ", ")));
}

bool ManifestReader::trait_key(std::string_view name) {
  // The writer keeps the table's order, so the key is most often one of the next few.
  const auto& fields = trait_fields();
  for (std::size_t step = 0; step < fields.size(); ++step) {
    std::size_t i = traits_.field + step;
    if (i >= fields.size()) i -= fields.size();
    if (fields[i].key == name) return enter_key(traits_, i, name);
  }
  std::string known;
  for (const TraitField& field : fields) known.append(known.empty() ? "" : ", ").append(field.key);
  return unknown_key(name, known);
}

bool ManifestReader::key(std::string& name) {
  switch (place_) {
    case Place::kRoot:
      return find_key(kRootKeys, root_, name);
    case Place::kPack:
      return find_key(kPackKeys, pack_, name);
    case Place::kSource:
      return find_key(kSourceKeys, item_, name);
    case Place::kKernel:
      return find_key(kKernelKeys, item_, name);
    default:
      return trait_key(name);
  }
}

bool ManifestReader::start_object(std::size_t) {
  switch (place_) {
    case Place::kDocument:
      place_ = Place::kRoot;
      return true;
    case Place::kPacks:
      manifest_.packs.emplace_back();
      pack_ = {};
      place_ = Place::kPack;
      return true;
    case Place::kSources:
      pack().sources.emplace_back();
      item_ = {};
      place_ = Place::kSource;
      return true;
    case Place::kKernels:
      pack().kernels.emplace_back();
      item_ = {};
      place_ = Place::kKernel;
      return true;
    case Place::kKernel:
      if (current_key() != "traits") break;
      traits_ = {};
      place_ = Place::kTraits;
      return true;
    default:
      break;
  }
  return reject_type("an object");
}

bool ManifestReader::start_array(std::size_t) {
  if (place_ == Place::kRoot && current_key() == "packs") {
    place_ = Place::kPacks;
  } else if (place_ == Place::kPack && current_key() == "sources") {
    place_ = Place::kSources;
  } else if (place_ == Place::kPack && current_key() == "kernels") {
    place_ = Place::kKernels;
  } else {
    return reject_type("an array");
  }
  return true;
}

bool ManifestReader::end_array() {
  place_ = place_ == Place::kPacks ? Place::kRoot : Place::kPack;
  return true;
}

template <std::size_t N>
bool ManifestReader::require(const std::array<std::string_view, N>& keys, std::uint32_t needed,
                             const ObjectState& state) {
  for (std::size_t i = 0; i < N; ++i) {
    if ((needed & ~state.seen) >> i & 1U) {
      return reject_at(fmt::format("{}/{}", pointer(false), keys[i]), "the key is missing");
    }
  }
  return true;
}

bool ManifestReader::end_kernel() {
  // Everything but the path (bit 1), which follows from the name.
  if (!require(kKernelKeys, 0b111101, item_)) return false;
  if (!(item_.seen & 0b10)) kernel().path = kernel().name + ".cubin";
  place_ = Place::kKernels;
  return true;
}

bool ManifestReader::end_traits() {
  const std::string_view missing = missing_trait(traits_.seen);
  if (!missing.empty()) {
    return reject_at(fmt::format("{}/{}", pointer(false), missing), "the key is missing");
  }
  if ((traits_.seen & kDtypeKvBit) && (traits_.seen & kDtypeKOrVBits)) {
    return reject_at(pointer(false) + "/dtype_kv",
                     "stands for dtype_k and dtype_v; give it or the two, not both");
  }
  apply_trait_defaults(kernel().traits, traits_.seen);
  place_ = Place::kKernel;
  return true;
}

bool ManifestReader::end_object() {
  switch (place_) {
    case Place::kRoot:
      return require(kRootKeys, 0b10111, root_);
    case Place::kPack:
      if (!require(kPackKeys, 0b10111001, pack_)) return false;
      place_ = Place::kPacks;
      return true;
    case Place::kSource:
      if (!require(kSourceKeys, 0b011, item_)) return false;
      place_ = Place::kSources;
      return true;
    case Place::kKernel:
      return end_kernel();
    default:
      return end_traits();
  }
}

bool ManifestReader::parse_error(std::size_t, const std::string&,
                                 const nlohmann::detail::exception& error) {
  // "[json.exception.parse_error.101] parse error at line 3, column 7: ...": the tag is noise.
  std::string_view message = error.what();
  if (const std::size_t end = message.find("] "); end != std::string_view::npos) {
    message.remove_prefix(end + 2);
  }
  std::string visible = shown(message.substr(0, 100000));
  error_ =
      Error(StatusCode::kManifestInvalid, fmt::format("{}: not a JSON text: {}", file_name_,
                                                      visible.substr(1, visible.rfind('\'') - 1)));
  return false;
}

bool ManifestReader::read_text(Scalar value, std::string& out) {
  if (value.type != Scalar::Type::kString) return reject_type(type_name(value.type));
  out = std::move(*value.text);
  return true;
}

template <class Enum>
bool ManifestReader::read_word(const Scalar& value, Enum& out) {
  if (value.type != Scalar::Type::kString) return reject_type(type_name(value.type));
  const std::optional<Enum> word = parse_word<Enum>(*value.text);
  if (!word)
    return reject("unknown word {}; allowed are {}", shown(*value.text), word_list<Enum>());
  out = *word;
  return true;
}

template <class Number>
bool ManifestReader::read_number(const Scalar& value, std::uint64_t min, std::uint64_t max,
                                 Number& out) {
  if (value.type == Scalar::Type::kNegative)
    return reject("negative; allowed are {} to {}", min, max);
  if (value.type != Scalar::Type::kUnsigned) return reject_type(type_name(value.type));
  if (value.number < min || value.number > max) {
    return reject("{} is out of range; allowed are {} to {}", value.number, min, max);
  }
  out = static_cast<Number>(value.number);
  return true;
}

bool ManifestReader::root_value(Scalar value) {
  switch (root_.field) {
    case 0: {
      std::string schema;
      if (!read_text(value, schema)) return false;
      if (schema == "cubist.manifest") return true;
      return reject("{} is not 'cubist.manifest': this is no Cubist manifest", shown(schema));
    }
    case 1:
      if (value.type == Scalar::Type::kUnsigned && value.number == Manifest::kSchemaVersion) {
        return true;
      }
      if (value.type != Scalar::Type::kUnsigned) return reject_type(type_name(value.type));
      return reject("version {}; this program reads version {} (a newer program may be needed)",
                    value.number, Manifest::kSchemaVersion);
    case 2:
      return read_text(value, manifest_.name);
    case 3:
      return read_text(value, manifest_.description);
    default:
      return reject_type(type_name(value.type));
  }
}

bool ManifestReader::pack_value(Scalar value) {
  switch (pack_.field) {
    case 0:
      return read_text(value, pack().name);
    case 1:
      return read_text(value, pack().version);
    case 2:
      return read_text(value, pack().license);
    case 3:
      return read_word(value, pack().family);
    case 4:
      return read_word(value, pack().revision);
    case 5:
      return read_word(value, pack().param_layout);
    default:
      return reject_type(type_name(value.type));
  }
}

bool ManifestReader::source_value(Scalar value) {
  Source& source = pack().sources.back();
  if (item_.field == 1) return read_text(value, source.location);
  if (item_.field == 2) return read_text(value, source.prefix);
  if (value.type != Scalar::Type::kString) return reject_type(type_name(value.type));
  for (std::size_t i = 0; i < kSourceTypes.size(); ++i) {
    if (*value.text != kSourceTypes[i]) continue;
    source.kind = static_cast<Source::Kind>(i);
    return true;
  }
  return reject("unknown word {}; allowed are http, folder, zip or pip", shown(*value.text));
}

bool ManifestReader::kernel_value(Scalar value) {
  KernelRecord& record = kernel();
  switch (item_.field) {
    case 0:
      return read_text(value, record.name);
    case 1:
      return read_text(value, record.path);
    case 2:
      if (value.type != Scalar::Type::kString) return reject_type(type_name(value.type));
      if (parse_hex(*value.text, record.sha256.bytes)) return true;
      return reject("{} is no SHA-256 ({} characters; 64 hexadecimal digits are needed)",
                    shown(*value.text), value.text->size());
    case 3:
      return read_number(value, 1, kMaxKernelBytes, record.size_bytes);
    case 4: {
      if (value.type != Scalar::Type::kString) return reject_type(type_name(value.type));
      const std::optional<SmArch> arch = parse_sm_arch(*value.text);
      if (!arch || !value.text->starts_with("sm_")) {
        return reject("{} is no architecture such as sm_90a, sm_100f or sm_120",
                      shown(*value.text));
      }
      record.traits.arch = *arch;
      return true;
    }
    default:
      return reject_type(type_name(value.type));
  }
}

bool ManifestReader::trait_value(const Scalar& value) {
  const TraitField& field = trait_fields()[traits_.field];
  KernelTraits& traits = kernel().traits;
  return std::visit(
      [&](auto member) {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, BothKv>) {
          if (!read_word(value, traits.dtype_k)) return false;
          traits.dtype_v = traits.dtype_k;
          return true;
        } else {
          using Type = std::remove_cvref_t<decltype(traits.*member)>;
          if constexpr (std::is_enum_v<Type>) {
            return read_word(value, traits.*member);
          } else if constexpr (std::is_same_v<Type, bool>) {
            if (value.type != Scalar::Type::kBool) return reject_type(type_name(value.type));
            traits.*member = value.boolean;
            return true;
          } else {
            return read_number(value, field.min, field.max, traits.*member);
          }
        }
      },
      field.member);
}

bool ManifestReader::scalar(Scalar value) {
  switch (place_) {
    case Place::kRoot:
      return root_value(value);
    case Place::kPack:
      return pack_value(value);
    case Place::kSource:
      return source_value(value);
    case Place::kKernel:
      return kernel_value(value);
    case Place::kTraits:
      return trait_value(value);
    default:
      return reject_type(type_name(value.type));
  }
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, std::string_view file_name) {
  ManifestReader reader(file_name);
  if (!Json::sax_parse(text.data(), text.data() + text.size(), &reader)) {
    return tl::unexpected<Error>(reader.take_error());
  }
  Manifest manifest = reader.take_manifest();
  CUBIST_RETURN_IF_ERROR(validate_manifest(manifest, file_name));
  return manifest;
}

Result<Manifest> load_manifest(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxManifestBytes));
  CUBIST_ASSIGN_OR_RETURN(Manifest manifest, parse_manifest(text, path));
  const std::size_t slash = path.rfind('/');
  manifest.folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return manifest;
}

}  // namespace cubist
