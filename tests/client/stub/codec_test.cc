// SPDX-License-Identifier: Apache-2.0
//
// Holds the thin stub's messages against protobuf's own, both ways, with every field set.
#include "client/stub/wire/codec.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "client/stub/wire/fields.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::stub {
namespace {

namespace proto = tuner::v1;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Sets fields to values that differ from one another, also negative and large ones.
class Filler {
 public:
  // Of each oneof the alternative number `choice`, modulo how many there are.
  explicit Filler(int choice) : choice_(choice) {}

  void Fill(Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const auto* oneof = field.real_containing_oneof();
      if (oneof != nullptr && field.index_in_oneof() != choice_ % oneof->field_count()) continue;
      const int count = field.is_repeated() ? 3 : 1;
      for (int k = 0; k < count; ++k) Set(message, field);
    }
  }

 private:
  int64_t Next() {
    ++count_;
    return count_ % 3 == 0 ? -count_ : count_ % 3 == 1 ? count_ : (int64_t{1} << 40) + count_;
  }

  void Set(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    const bool many = field.is_repeated();
#define PHOBOS_SET(Kind, value)                        \
  many ? reflection.Add##Kind(&message, &field, value) \
       : reflection.Set##Kind(&message, &field, value)
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        PHOBOS_SET(Int32, static_cast<int32_t>(Next()));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        PHOBOS_SET(Int64, Next());
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        PHOBOS_SET(UInt64, static_cast<uint64_t>(Next()));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        PHOBOS_SET(Double, static_cast<double>(Next()) / 7);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        PHOBOS_SET(Bool, true);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        PHOBOS_SET(EnumValue, 1 + static_cast<int>(++count_ % 20));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        PHOBOS_SET(String, "text " + std::to_string(++count_));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Fill(many ? *reflection.AddMessage(&message, &field)
                  : *reflection.MutableMessage(&message, &field));
        break;
      default:
        FAIL() << field.full_name() << " has a type that this test does not know";
    }
#undef PHOBOS_SET
  }

  const int choice_;
  int64_t count_ = 0;
};

// Collects number and name of a message's fields.
struct Collector {
  std::map<int, std::string> fields;

  template <typename T>
  void operator()(int number, const char* name, T&) {
    EXPECT_TRUE(fields.emplace(number, name).second) << name;
  }
  template <typename T, typename Variant>
  void OneOf(int number, const char* name, Variant&) {
    EXPECT_TRUE(fields.emplace(number, name).second) << name;
  }
};

template <typename Ours>
void ExpectSameFields(const Descriptor& type) {
  Ours message;
  Collector ours;
  Fields(ours, message);
  std::map<int, std::string> theirs;
  for (int i = 0; i < type.field_count(); ++i) {
    theirs[type.field(i)->number()] = type.field(i)->name();
  }
  EXPECT_EQ(ours.fields, theirs) << type.full_name();
}

// protobuf -> bytes -> ours -> bytes -> protobuf.
template <typename Ours, typename Theirs>
void ExpectRoundTrip(const Theirs& message) {
  const std::string bytes = message.SerializeAsString();
  const StatusOr<Ours> ours = Decode<Ours>(bytes);
  ASSERT_TRUE(ours.ok()) << ours.status().message();
  const std::string again = Encode(*ours);
  Theirs back;
  ASSERT_TRUE(back.ParseFromString(again));
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(message, back)) << difference;
  // Fields are listed in order of their numbers, as protobuf writes them: the bytes agree too.
  EXPECT_EQ(again, bytes) << message.GetTypeName();
}

template <typename Ours, typename Theirs>
void ExpectAgreement() {
  ExpectSameFields<Ours>(*Theirs::descriptor());
  ExpectRoundTrip<Ours>(Theirs());
  for (int choice = 0; choice < 8; ++choice) {
    Theirs full;
    Filler(choice).Fill(full);
    ExpectRoundTrip<Ours>(full);
  }
}

TEST(Codec, AgreesWithProtobufOnEveryTravellingMessage) {
  ExpectAgreement<KernelDescription, compiler::v1::KernelDescription>();
  ExpectAgreement<Result, proto::Result>();
  ExpectAgreement<ErrorDetail, proto::ErrorDetail>();
  ExpectAgreement<HelloRequest, proto::HelloRequest>();
  ExpectAgreement<HelloResponse, proto::HelloResponse>();
  ExpectAgreement<LookupRequest, proto::LookupRequest>();
  ExpectAgreement<LookupResponse, proto::LookupResponse>();
  ExpectAgreement<TuneRequest, proto::TuneRequest>();
  ExpectAgreement<TuneEvent, proto::TuneEvent>();
  ExpectAgreement<CompileRequest, proto::CompileRequest>();
  ExpectAgreement<CompileResponse, proto::CompileResponse>();
  ExpectAgreement<GetArtifactRequest, proto::GetArtifactRequest>();
  ExpectAgreement<ArtifactChunk, proto::ArtifactChunk>();
  ExpectAgreement<AdoptRequest, proto::AdoptRequest>();
  ExpectAgreement<AdoptResponse, proto::AdoptResponse>();
}

TEST(Codec, ListsTheFieldsOfNestedMessages) {
  ExpectSameFields<Constant>(*compiler::v1::Constant::descriptor());
  ExpectSameFields<Dimension>(*compiler::v1::Dimension::descriptor());
  ExpectSameFields<Parameter>(*compiler::v1::Parameter::descriptor());
  ExpectSameFields<ExtentPromise>(*compiler::v1::ExtentPromise::descriptor());
  ExpectSameFields<ConditionStep>(*compiler::v1::ConditionOp::descriptor());
  ExpectSameFields<Condition>(*compiler::v1::Condition::descriptor());
  ExpectSameFields<VariantSettings>(*compiler::v1::VariantSettings::descriptor());
  ExpectSameFields<Artifact>(*compiler::v1::Artifact::descriptor());
  ExpectSameFields<Device>(*proto::Device::descriptor());
  ExpectSameFields<KernelRef>(*proto::KernelRef::descriptor());
  ExpectSameFields<Extent>(*proto::Extent::descriptor());
  ExpectSameFields<Scalar>(*proto::Scalar::descriptor());
  ExpectSameFields<Grid>(*proto::Grid::descriptor());
  ExpectSameFields<TuneOptions>(*proto::TuneOptions::descriptor());
  ExpectSameFields<VariantResult>(*proto::VariantResult::descriptor());
  ExpectSameFields<TimeSplit>(*proto::TimeSplit::descriptor());
  ExpectSameFields<LaunchPlan>(*proto::LaunchPlan::descriptor());
  ExpectSameFields<Hit>(*proto::Hit::descriptor());
  ExpectSameFields<Miss>(*proto::Miss::descriptor());
  ExpectSameFields<NeedSource>(*proto::NeedSource::descriptor());
  ExpectSameFields<Open>(*proto::Open::descriptor());
  ExpectSameFields<BufferRef>(*proto::BufferRef::descriptor());
  ExpectSameFields<VariantGrid>(*proto::VariantGrid::descriptor());
  ExpectSameFields<Args>(*proto::Args::descriptor());
  ExpectSameFields<Expected>(*proto::Expected::descriptor());
  ExpectSameFields<ReferenceFailed>(*proto::ReferenceFailed::descriptor());
  ExpectSameFields<SegmentGrant>(*proto::SegmentGrant::descriptor());
  ExpectSameFields<BufferRequest>(*proto::BufferRequest::descriptor());
  ExpectSameFields<Follow>(*proto::Follow::descriptor());
  ExpectSameFields<Lead>(*proto::Lead::descriptor());
  ExpectSameFields<ArgsOwned>(*proto::ArgsOwned::descriptor());
  ExpectSameFields<Progress>(*proto::Progress::descriptor());
  ExpectSameFields<TuneDone>(*proto::TuneDone::descriptor());
  ExpectSameFields<Queued>(*proto::Queued::descriptor());
  ExpectSameFields<Compiled>(*proto::Compiled::descriptor());
}

TEST(Codec, ZeroThatIsPresentStaysPresent) {
  proto::Result result;
  for (auto* constant : {result.add_winner_settings(), result.add_winner_settings(),
                         result.add_winner_settings(), result.add_winner_settings()}) {
    constant->set_name("C");
  }
  result.mutable_winner_settings(0)->set_int_value(0);
  result.mutable_winner_settings(1)->set_float_value(0);
  result.mutable_winner_settings(2)->set_bool_value(false);
  result.mutable_winner_settings(3)->set_string_value("");
  result.mutable_options()->set_rtol(0);
  result.mutable_options()->set_flush_l2(false);
  const auto ours = Decode<Result>(result.SerializeAsString());
  ASSERT_TRUE(ours.ok());
  ASSERT_EQ(ours->winner_settings.size(), 4u);
  EXPECT_EQ(std::get<int64_t>(ours->winner_settings[0].value), 0);
  EXPECT_EQ(std::get<double>(ours->winner_settings[1].value), 0);
  EXPECT_EQ(std::get<bool>(ours->winner_settings[2].value), false);
  EXPECT_EQ(std::get<std::string>(ours->winner_settings[3].value), "");
  EXPECT_EQ(ours->options.rtol, 0.0);
  EXPECT_EQ(ours->options.flush_l2, false);
  EXPECT_FALSE(ours->options.atol.has_value());
  ExpectRoundTrip<Result>(result);
}

// google.rpc.Status {code: 9, message: "no", details: [any]}, by hand: its .proto is not in Debian.
std::string RpcStatus(const google::protobuf::Any& any) {
  const std::string detail = any.SerializeAsString();
  return std::string("\x08\x09\x12\x02no\x1a") + static_cast<char>(detail.size()) + detail;
}

TEST(Codec, FindsTheErrorDetailInAStatus) {
  proto::ErrorDetail detail;
  detail.set_reason(proto::ERROR_REASON_NO_WINNER);
  detail.set_key("N=1024");
  google::protobuf::Any any;
  any.PackFrom(detail);
  const auto found = DecodeErrorDetail(RpcStatus(any));
  ASSERT_TRUE(found.ok());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->reason, ErrorReason::kNoWinner);
  EXPECT_EQ((*found)->key, "N=1024");

  any.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  const auto other = DecodeErrorDetail(RpcStatus(any));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->has_value());
  EXPECT_FALSE(DecodeErrorDetail("\x1a\x7f").ok());
}

TEST(Codec, PassesOverWhatItDoesNotKnow) {
  proto::HelloResponse hello;
  hello.set_daemon_version("1.2.3");
  std::string bytes = hello.SerializeAsString();
  bytes += std::string("\xa2\x06\x03new", 6);   // field 100, a string
  bytes += std::string("\xa8\x06\x96\x01", 4);  // field 101, a varint
  bytes += std::string("\x08\x05", 2);          // field 1 as it should be
  bytes += std::string("\x12\x00", 2);          // daemon_version again: the last one counts
  bytes += std::string("\x20\x01", 2);          // field 4 (devices) as a varint: another type
  const auto decoded = Decode<HelloResponse>(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->wire_version, 5);
  EXPECT_EQ(decoded->daemon_version, "");
  EXPECT_TRUE(decoded->devices.empty());
}

TEST(Codec, AFieldOfAnotherTypeIsNotPresent) {
  // Every field of a TuneEvent as a varint: they are messages.
  std::string bytes;
  for (char number = 1; number <= 8; ++number) bytes += {static_cast<char>(number << 3), 1};
  const auto event = Decode<TuneEvent>(bytes);
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(Encode(*event), "");
  EXPECT_FALSE(event->hit.has_value());
  EXPECT_FALSE(event->done.has_value());
}

// Two messages after each other are one in which both members of the oneof stand.
template <typename Ours, typename Theirs>
void ExpectTheLastMemberCounts() {
  const int members = Theirs::descriptor()->oneof_decl(0)->field_count();
  for (int first = 0; first < members; ++first) {
    for (int last = 0; last < members; ++last) {
      Theirs one;
      Theirs other;
      Filler(first).Fill(one);
      Filler(last).Fill(other);
      const std::string bytes = one.SerializeAsString() + other.SerializeAsString();
      Theirs merged;
      ASSERT_TRUE(merged.ParseFromString(bytes));
      const StatusOr<Ours> ours = Decode<Ours>(bytes);
      ASSERT_TRUE(ours.ok());
      Theirs back;
      ASSERT_TRUE(back.ParseFromString(Encode(*ours)));
      EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(merged, back))
          << first << " then " << last << "\n"
          << merged.DebugString() << "\nbut\n"
          << back.DebugString();
    }
  }
}

TEST(Codec, TheLastMemberOfAOneofCounts) {
  ExpectTheLastMemberCounts<LookupResponse, proto::LookupResponse>();
  ExpectTheLastMemberCounts<TuneRequest, proto::TuneRequest>();
  ExpectTheLastMemberCounts<TuneEvent, proto::TuneEvent>();
  ExpectTheLastMemberCounts<CompileResponse, proto::CompileResponse>();
  ExpectTheLastMemberCounts<AdoptResponse, proto::AdoptResponse>();
}

TEST(Codec, ReadsUnpackedLists) {
  // ties (9) as single varints, as a writer may choose.
  const auto decoded = Decode<Result>(std::string_view("\x48\x01\x48\x02", 4));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->ties, (std::vector<int32_t>{1, 2}));
}

TEST(Codec, MalformedBytesAreAnError) {
  for (const std::string_view bytes :
       {std::string_view("\x0a\x05"
                         "abc",
                         5),
        std::string_view("\x0a", 1),
        std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11),
        std::string_view("\x00\x00", 2)}) {
    const auto decoded = Decode<HelloRequest>(bytes);
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.status().code(), Code::kInternal);
  }
}

TEST(Codec, EveryPrefixOfAMessageIsHandled) {
  proto::TuneEvent event;
  Filler(5).Fill(event);
  const std::string bytes = event.SerializeAsString();
  int malformed = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    if (!Decode<TuneEvent>(std::string_view(bytes).substr(0, length)).ok()) ++malformed;
  }
  EXPECT_GT(malformed, 0);
}

}  // namespace
}  // namespace phobos::stub
