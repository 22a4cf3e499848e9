// SPDX-License-Identifier: Apache-2.0
#include "client/c/json.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "client/cpp/text.h"
#include "client/stub/wire/fields.h"
#include "client/stub/wire/words.h"

namespace phobos::json {
namespace {

void Quote(std::string_view text, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : Utf8Of(text)) {  // a path need be none
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

// Numbers that JSON cannot write are texts.
void Float(double value, std::string& out) {
  if (std::isfinite(value)) {
    out += FloatText(value);
  } else {
    Quote(FloatText(value), out);
  }
}

void Value(const Constant& constant, std::string& out) {
  if (const int64_t* whole = std::get_if<int64_t>(&constant.value)) {
    out += std::to_string(*whole);
  } else if (const double* real = std::get_if<double>(&constant.value)) {
    Float(*real, out);
  } else if (const bool* truth = std::get_if<bool>(&constant.value)) {
    out += *truth ? "true" : "false";
  } else if (const std::string* text = std::get_if<std::string>(&constant.value)) {
    Quote(*text, out);
  } else {
    out += "null";
  }
}

// Writes a message's fields, one after another, as members of an object.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) {}

  template <typename T>
  void operator()(int, const char* name, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (value.empty()) return;
    }
    Name(name);
    Write(value);
  }

  template <typename T>
  void operator()(int number, const char* name, const std::optional<T>& value) {
    if (value.has_value()) (*this)(number, name, *value);
  }

  template <typename T>
  void operator()(int, const char* name, const std::vector<T>& values) {
    if (values.empty()) return;
    Name(name);
    List(values);
  }

  template <typename T, typename Variant>
  void OneOf(int, const char* name, const Variant& value) {
    if (const T* alternative = std::get_if<T>(&value)) (*this)(0, name, *alternative);
  }

  void Name(std::string_view name) {
    if (!is_first_) out_ += ',';
    is_first_ = false;
    Quote(name, out_);
    out_ += ':';
  }

  template <typename T>
  void Write(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      Quote(value, out_);
    } else if constexpr (std::is_same_v<T, bool>) {
      out_ += value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, double>) {
      Float(value, out_);
    } else if constexpr (std::is_enum_v<T>) {
      Quote(stub::Word(value), out_);
    } else if constexpr (std::is_integral_v<T>) {
      out_ += std::to_string(value);
    } else {
      out_ += '{';
      stub::Fields(Members(out_), value);
      out_ += '}';
    }
  }

  template <typename T>
  void List(const std::vector<T>& values) {
    out_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ',';
      Write(values[i]);
    }
    out_ += ']';
  }

  // Constants and extents are one object, their names the members.
  void List(const std::vector<Constant>& constants) {
    out_ += '{';
    Members members(out_);
    for (const Constant& constant : constants) {
      members.Name(constant.name);
      Value(constant, out_);
    }
    out_ += '}';
  }

  void List(const std::vector<Extent>& extents) {
    out_ += '{';
    Members members(out_);
    for (const Extent& extent : extents) {
      members.Name(extent.name);
      out_ += std::to_string(extent.value);
    }
    out_ += '}';
  }

 private:
  std::string& out_;
  bool is_first_ = true;
};

const char* OriginWord(Plan::Origin origin) {
  switch (origin) {
    case Plan::Origin::kWinner:
      return "winner";
    case Plan::Origin::kFirstChoices:
      return "first_choices";
    case Plan::Origin::kVariant:
      break;
  }
  return "variant";
}

}  // namespace

std::string Settings(const std::vector<Constant>& settings) {
  std::string out;
  Members(out).List(settings);
  return out;
}

std::string Description(const KernelDescription& description) {
  std::string out;
  Members(out).Write(description);
  return out;
}

std::string ResultText(const Result& result, bool cached) {
  std::string out = "{";
  Members members(out);
  stub::Fields(members, result);
  members(0, "cached", cached);
  return out + "}";
}

std::string Variants(const std::vector<VariantResult>& variants) {
  std::string out;
  Members(out).List(variants);
  return out;
}

std::string PlanText(const Plan& plan) {
  const LaunchPlan& variant = plan.variant();
  const Plan::Facts& facts = plan.facts();
  std::string out = "{";
  Members members(out);
  members(0, "variant", variant.variant);
  members.Name("settings");
  members.List(variant.settings);
  members(0, "origin", std::string(OriginWord(facts.origin)));
  members(0, "generation", facts.generation);
  members(0, "substitution", facts.substitution);
  if (facts.race_verdict != RaceVerdict::kUnspecified) {
    members(0, "race_verdict", facts.race_verdict);
    members(0, "race_detail", facts.race_detail);
  }
  members(0, "chip", variant.chip);
  members(0, "threads", variant.threads);
  members(0, "artifact_path", variant.artifact_path);
  members(0, "artifact_digest", variant.artifact.digest);
  return out + "}";
}

std::string Hello(const stub::Link& link) {
  std::string out = "{";
  Members members(out);
  stub::Fields(members, link.hello);
  members(0, "socket", link.socket);
  return out + "}";
}

}  // namespace phobos::json
