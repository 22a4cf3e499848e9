// SPDX-License-Identifier: Apache-2.0
#include "client/stub/wire/codec.h"

#include <concepts>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <type_traits>

#include "client/stub/wire/fields.h"

namespace phobos::stub {
namespace {

using protozero::pbf_wire_type;

template <typename T>
constexpr bool kIsMessage = std::is_class_v<T> && !std::same_as<T, std::string>;

// Writes fields as proto3 does: what has its default value is left out, unless its presence tells
// something (an optional, an alternative, an element of a list).
class Encoder {
 public:
  explicit Encoder(protozero::pbf_writer& to) : to_(to) {}

  template <typename T>
  void operator()(int number, const char*, const T& value) {
    if constexpr (kIsMessage<T>) {
      if (const std::string bytes = Encode(value); !bytes.empty())
        to_.add_message(Tag(number), bytes);
    } else if (value != T()) {
      Write(number, value);
    }
  }

  template <typename T>
  void operator()(int number, const char*, const std::optional<T>& value) {
    if (value.has_value()) Write(number, *value);
  }

  template <typename T>
  void operator()(int number, const char*, const std::vector<T>& values) {
    if (values.empty()) return;
    if constexpr (std::integral<T>) {
      WritePacked(number, values);
    } else {
      for (const T& value : values) Write(number, value);
    }
  }

  template <typename T, typename Variant>
  void OneOf(int number, const char*, const Variant& value) {
    if (const T* alternative = std::get_if<T>(&value)) Write(number, *alternative);
  }

 private:
  static protozero::pbf_tag_type Tag(int number) {
    return static_cast<protozero::pbf_tag_type>(number);
  }

  template <typename T>
  void Write(int number, const T& value) {
    if constexpr (std::same_as<T, std::string>) {
      to_.add_string(Tag(number), value);
    } else if constexpr (std::same_as<T, double>) {
      to_.add_double(Tag(number), value);
    } else if constexpr (std::same_as<T, bool>) {
      to_.add_bool(Tag(number), value);
    } else if constexpr (std::same_as<T, uint64_t>) {
      to_.add_uint64(Tag(number), value);
    } else if constexpr (std::is_enum_v<T> || std::integral<T>) {
      to_.add_int64(Tag(number), static_cast<int64_t>(value));
    } else {
      to_.add_message(Tag(number), Encode(value));
    }
  }

  template <typename T>
  void WritePacked(int number, const std::vector<T>& values) {
    if constexpr (std::same_as<T, uint64_t>) {
      to_.add_packed_uint64(Tag(number), values.begin(), values.end());
    } else {
      to_.add_packed_int64(Tag(number), values.begin(), values.end());
    }
  }

  protozero::pbf_writer& to_;
};

template <typename T>
void DecodeFields(protozero::pbf_reader from, T& message);

// Reads the field that `from` stands at into the member of that number, if there is one.
class FieldDecoder {
 public:
  explicit FieldDecoder(protozero::pbf_reader& from)
      : from_(from), number_(static_cast<int>(from.tag())), type_(from.wire_type()) {}

  bool is_read() const { return is_read_; }
  // The number of the field that was read, or 0.
  int number_read() const { return is_read_ ? number_ : 0; }

  template <typename T>
  void operator()(int number, const char*, T& value) {
    if (number == number_) Read(value);
  }

  template <typename T>
  void operator()(int number, const char*, std::optional<T>& value) {
    if (number != number_) return;
    // A field that is there again is merged into the one before; one of a wrong type is none.
    T read = value.has_value() ? *value : Empty<T>();
    Read(read);
    if (is_read_) value = std::move(read);
  }

  template <typename T>
  void operator()(int number, const char*, std::vector<T>& values) {
    if (number != number_) return;
    if constexpr (std::integral<T>) {
      if (type_ == pbf_wire_type::length_delimited) {
        for (const auto value : from_.get_packed_int64()) values.push_back(static_cast<T>(value));
        is_read_ = true;
        return;
      }
    }
    T value = Empty<T>();
    Read(value);
    if (is_read_) values.push_back(std::move(value));
  }

  template <typename T, typename Variant>
  void OneOf(int number, const char*, Variant& value) {
    if (number != number_) return;
    T alternative = {};
    Read(alternative);
    if (is_read_) value = std::move(alternative);
  }

 private:
  // A message as it is before any field was read. Grid's own defaults are a launch's.
  template <typename T>
  static T Empty() {
    if constexpr (std::same_as<T, Grid>) {
      return Grid{0, 0, 0};
    } else {
      return T();
    }
  }

  template <typename T>
  void Read(T& value) {
    if constexpr (kIsMessage<T>) {
      if (type_ != pbf_wire_type::length_delimited) return;
      DecodeFields(from_.get_message(), value);
    } else if constexpr (std::same_as<T, std::string>) {
      if (type_ != pbf_wire_type::length_delimited) return;
      value = from_.get_string();
    } else if constexpr (std::same_as<T, double>) {
      if (type_ != pbf_wire_type::fixed64) return;
      value = from_.get_double();
    } else {
      if (type_ != pbf_wire_type::varint) return;
      const uint64_t bits = from_.get_uint64();
      if constexpr (std::same_as<T, bool>) {
        value = bits != 0;
      } else {
        value = static_cast<T>(bits);
      }
    }
    is_read_ = true;
  }

  protozero::pbf_reader& from_;
  const int number_;
  const pbf_wire_type type_;
  bool is_read_ = false;
};

template <typename T>
void DecodeFields(protozero::pbf_reader from, T& message) {
  while (from.next()) {
    FieldDecoder decoder(from);
    Fields(decoder, message);
    if (!decoder.is_read()) from.skip();
  }
}

// google.rpc.Status and google.protobuf.Any, as far as they carry an ErrorDetail.
constexpr protozero::pbf_tag_type kStatusDetails = 3;
constexpr protozero::pbf_tag_type kAnyTypeUrl = 1;
constexpr protozero::pbf_tag_type kAnyValue = 2;
constexpr std::string_view kErrorDetailName = "/phobos.tuner.v1.ErrorDetail";

void ReadAny(protozero::pbf_reader any, std::optional<ErrorDetail>& detail) {
  std::string type;
  protozero::data_view value;
  while (any.next()) {
    if (any.wire_type() != pbf_wire_type::length_delimited) {
      any.skip();
    } else if (any.tag() == kAnyTypeUrl) {
      type = any.get_string();
    } else if (any.tag() == kAnyValue) {
      value = any.get_view();
    } else {
      any.skip();
    }
  }
  if (!type.ends_with(kErrorDetailName)) return;
  detail.emplace();
  DecodeFields(protozero::pbf_reader(value), *detail);
}

Status Malformed(const std::exception& error) {
  return Status(Code::kInternal, std::string("malformed message: ") + error.what());
}

}  // namespace

template <typename Message>
std::string Encode(const Message& message) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  Fields(Encoder(writer), message);
  return bytes;
}

template <typename Message>
StatusOr<Message> Decode(std::string_view bytes) {
  // protozero tells malformed input by exceptions; none leaves this function.
  try {
    Message message;
    DecodeFields(protozero::pbf_reader(bytes.data(), bytes.size()), message);
    return message;
  } catch (const protozero::exception& error) {
    return Malformed(error);
  }
}

StatusOr<std::optional<ErrorDetail>> DecodeErrorDetail(std::string_view rpc_status) {
  try {
    std::optional<ErrorDetail> detail;
    protozero::pbf_reader status(rpc_status.data(), rpc_status.size());
    while (status.next()) {
      if (status.tag() == kStatusDetails && status.wire_type() == pbf_wire_type::length_delimited) {
        ReadAny(status.get_message(), detail);
      } else {
        status.skip();
      }
    }
    return detail;
  } catch (const protozero::exception& error) {
    return Malformed(error);
  }
}

#define PHOBOS_MESSAGE(Message)                         \
  template std::string Encode<Message>(const Message&); \
  template StatusOr<Message> Decode<Message>(std::string_view)

PHOBOS_MESSAGE(KernelDescription);
PHOBOS_MESSAGE(Result);
PHOBOS_MESSAGE(ErrorDetail);
PHOBOS_MESSAGE(HelloRequest);
PHOBOS_MESSAGE(HelloResponse);
PHOBOS_MESSAGE(LookupRequest);
PHOBOS_MESSAGE(LookupResponse);
PHOBOS_MESSAGE(TuneRequest);
PHOBOS_MESSAGE(TuneEvent);
PHOBOS_MESSAGE(CompileRequest);
PHOBOS_MESSAGE(CompileResponse);
PHOBOS_MESSAGE(GetArtifactRequest);
PHOBOS_MESSAGE(ArtifactChunk);
PHOBOS_MESSAGE(AdoptRequest);
PHOBOS_MESSAGE(AdoptResponse);

#undef PHOBOS_MESSAGE

}  // namespace phobos::stub
