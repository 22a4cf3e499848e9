// SPDX-License-Identifier: Apache-2.0
#include "client/stub/stream.h"

#include <gtest/gtest.h>

#include "client/stub/wire/types.h"

namespace phobos::stub {
namespace {

Stream Answering() {
  Stream stream;
  TakeHeader(stream, ":status", "200");
  TakeHeader(stream, "content-type", "application/grpc");
  return stream;
}

Status Ended(Stream stream) {
  stream.has_ended = true;
  return EndOf(stream);
}

TEST(Stream, MessagesMayArriveByteByByte) {
  std::string body;
  Frame("one", body);
  Frame("", body);
  Frame(std::string(1000, 'x'), body);
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{7}, body.size()}) {
    Stream stream = Answering();
    for (size_t i = 0; i < body.size(); i += piece) TakeBody(stream, body.substr(i, piece));
    ASSERT_EQ(stream.messages.size(), 3u);
    EXPECT_EQ(stream.messages[0], "one");
    EXPECT_EQ(stream.messages[1], "");
    EXPECT_EQ(stream.messages[2], std::string(1000, 'x'));
    EXPECT_TRUE(stream.input.empty());
    TakeHeader(stream, "grpc-status", "0");
    EXPECT_TRUE(Ended(stream).ok());
  }
}

TEST(Stream, ACompressedMessageIsRefused) {
  Stream stream = Answering();
  TakeBody(stream, std::string_view("\x01\x00\x00\x00\x01x", 6));
  EXPECT_EQ(Ended(stream).code(), Code::kUnimplemented);
  EXPECT_NE(Ended(stream).message().find("compressed"), std::string::npos);

  Stream announced = Answering();
  TakeHeader(announced, "grpc-encoding", "gzip");
  EXPECT_EQ(Ended(announced).code(), Code::kUnimplemented);
  EXPECT_NE(Ended(announced).message().find("gzip"), std::string::npos);

  Stream plain = Answering();
  TakeHeader(plain, "grpc-encoding", "identity");
  TakeHeader(plain, "grpc-status", "0");
  EXPECT_TRUE(Ended(plain).ok());
}

TEST(Stream, AnOversizedMessageIsRefusedByItsPrefix) {
  Stream stream = Answering();
  TakeBody(stream, std::string_view("\x00\xff\xff\xff\xff", 5));
  EXPECT_EQ(Ended(stream).code(), Code::kResourceExhausted);
  EXPECT_NE(Ended(stream).message().find("4294967295"), std::string::npos);
}

TEST(Stream, AnEndInTheMiddleOfAMessageIsNoSuccess) {
  Stream stream = Answering();
  TakeBody(stream, std::string_view("\x00\x00\x00\x00\x05"
                                    "ab",
                                    7));
  TakeHeader(stream, "grpc-status", "0");
  EXPECT_EQ(Ended(stream).code(), Code::kInternal);
}

TEST(Stream, StatusOfTrailers) {
  Stream stream = Answering();
  TakeHeader(stream, "grpc-status", "9");
  TakeHeader(stream, "grpc-message", "50%25 f%C3%BCr 100%; %zz");
  EXPECT_EQ(Ended(stream).code(), Code::kFailedPrecondition);
  EXPECT_EQ(Ended(stream).message(), "50% f\xc3\xbcr 100%; %zz");
  EXPECT_EQ(Ended(stream).detail(), nullptr);

  Stream strange = Answering();
  TakeHeader(strange, "grpc-status", "77");
  EXPECT_EQ(Ended(strange).code(), Code::kUnknown);
  TakeHeader(strange, "grpc-status", "word");
  EXPECT_EQ(Ended(strange).code(), Code::kUnknown);
}

TEST(Stream, DetailsInBase64WithAndWithoutPadding) {
  // google.rpc.Status {details: [Any {type_url: ".../phobos.tuner.v1.ErrorDetail",
  // value: ErrorDetail {key: "N=7"}}]}.
  const std::string padded =
      "GjgKL3R5cGUuZ29vZ2xlYXBpcy5jb20vcGhvYm9zLnR1bmVyLnYxLkVycm9yRGV0YWlsEgUaA049Nw";
  for (const std::string& text : {padded, padded + "==", padded + "="}) {
    Stream stream = Answering();
    TakeHeader(stream, "grpc-status", "5");
    TakeHeader(stream, "grpc-status-details-bin", text);
    const Status end = Ended(stream);
    EXPECT_EQ(end.code(), Code::kNotFound);
    ASSERT_NE(end.detail(), nullptr) << text;
    EXPECT_EQ(end.detail()->key, "N=7");
  }
  for (const char* text : {"!!!", "GjgK", ""}) {
    Stream stream = Answering();
    TakeHeader(stream, "grpc-status", "5");
    TakeHeader(stream, "grpc-status-details-bin", text);
    EXPECT_EQ(Ended(stream).code(), Code::kNotFound);
    EXPECT_EQ(Ended(stream).detail(), nullptr);
  }
}

TEST(Stream, AnswersThatAreNotGrpc) {
  Stream web;
  TakeHeader(web, ":status", "200");
  TakeHeader(web, "content-type", "text/html");
  EXPECT_EQ(Ended(web).code(), Code::kUnavailable);
  EXPECT_NE(Ended(web).message().find("text/html"), std::string::npos);

  Stream missing;
  TakeHeader(missing, ":status", "404");
  EXPECT_EQ(Ended(missing).code(), Code::kUnavailable);
  EXPECT_NE(Ended(missing).message().find("404"), std::string::npos);
}

TEST(Stream, ResetsWithoutAStatus) {
  for (const auto& [code, want] : {std::pair{7u, Code::kUnavailable},
                                   {8u, Code::kCancelled},
                                   {11u, Code::kResourceExhausted},
                                   {2u, Code::kInternal}}) {
    Stream stream = Answering();
    stream.close_code = code;
    EXPECT_EQ(Ended(stream).code(), want);
  }
}

}  // namespace
}  // namespace phobos::stub
