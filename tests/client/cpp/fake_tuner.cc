// SPDX-License-Identifier: Apache-2.0
#include "tests/client/cpp/fake_tuner.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/digest.h"

namespace phobos::testing {
namespace {

constexpr int kBlocks[] = {256, 512};
constexpr int64_t kSegmentBytes = 16 << 20;
constexpr int64_t kPage = 4096;

// Where the next tensor begins: on a page, as the daemon does it, and not where this one ends.
int64_t After(int64_t end) { return end / kPage * kPage + kPage; }

std::string ArtifactPath(int variant) {
  return std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") +
         "/tests/client/cpp/add" + std::to_string(kBlocks[variant]) + ".so";
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A kernel of four slots whose twin is a shared object's add.
std::string PtxOf(int variant) {
  std::string text = "// phobos-tuner: add BLOCK=" + std::to_string(kBlocks[variant]) +
                     "\n.version 7.8\n.target sm_80\n.address_size 64\n.visible .entry add(\n"
                     "  .param .u64 p0,\n  .param .u64 p1,\n  .param .u64 p2,\n  .param .u64 p3\n"
                     ")\n.maxntid 128\n{\n  ret;\n}\n";
  return text + "// host-twin: " + ArtifactPath(variant) + " add 0 128\n";
}

int64_t ValueOf(const google::protobuf::RepeatedPtrField<proto::Extent>& extents,
                const std::string& name) {
  for (const proto::Extent& extent : extents) {
    if (extent.name() == name) return extent.value();
  }
  return -1;
}

compiler::v1::KernelDescription AddDescription() {
  compiler::v1::KernelDescription description;
  description.set_kernel("add");
  description.set_source_digest(std::string(64, 'a'));
  for (const char* name : {"x", "y", "out"}) {
    auto* parameter = description.add_parameters();
    parameter->set_name(name);
    parameter->set_dtype(compiler::v1::DTYPE_F32);
    parameter->set_is_tensor(true);
    parameter->add_dims()->set_extent("N");
    parameter->set_is_read(std::string(name) != "out");
    parameter->set_is_written(std::string(name) == "out");
  }
  description.add_extents("N");
  description.add_key("N");
  for (int i = 0; i < 2; ++i) {
    auto* variant = description.add_variants();
    variant->set_index(i);
    variant->set_threads(256);
    variant->set_index_bits(32);
    auto* setting = variant->add_settings();
    setting->set_name("BLOCK");
    setting->set_int_value(kBlocks[i]);
  }
  description.set_grid_dims_used(1);
  return description;
}

}  // namespace

FakeTuner::FakeTuner() : description(AddDescription()), daemon_("", FakeDaemon::Listen::kLater) {
  daemon_.hello = [this](auto*, const auto&, proto::HelloResponse* response) {
    response->set_wire_version(1);
    response->set_side_socket(side_.socket());
    for (const std::string& card : cards) response->add_devices()->set_uuid(card);
    auto* device = response->add_devices();
    device->set_uuid("host");
    device->set_threads(2);
    return grpc::Status::OK;
  };
  daemon_.lookup = [this](auto*, const auto& q, auto* a) { return Lookup(q, a); };
  daemon_.compile = [this](auto*, const proto::CompileRequest& request,
                           proto::CompileResponse* response) {
    ++compiles;
    if (!compile_status.ok()) return compile_status;
    if (!Knows(request.kernel())) {
      response->mutable_need_source();
      return grpc::Status::OK;
    }
    auto* compiled = response->mutable_compiled();
    *compiled->mutable_plan() = PlanOf(request.variant());
    compiled->set_race_verdict(race_verdict);
    compiled->set_race_detail(race_verdict == compiler::v1::RACE_VERDICT_UNPROVEN ? "line 3" : "");
    return grpc::Status::OK;
  };
  daemon_.get_artifact = [this](auto*, const proto::GetArtifactRequest& request,
                                grpc::ServerWriter<proto::ArtifactChunk>* writer) {
    ++fetched_artifacts;
    for (int variant = 0; variant < 2; ++variant) {
      std::string bytes = ArtifactBytes(variant);
      if (Sha256Hex(bytes) != request.digest()) continue;
      if (spoils_artifacts) bytes.back() ^= 1;
      for (size_t i = 0; i < bytes.size(); i += 60000) {
        proto::ArtifactChunk chunk;
        chunk.set_bytes(bytes.substr(i, 60000));
        writer->Write(chunk);
      }
      return grpc::Status::OK;
    }
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such artifact");
  };
  daemon_.adopt = [this](auto*, const proto::AdoptRequest& request,
                         proto::AdoptResponse* response) {
    const int64_t n = ValueOf(request.result().key(), "N");
    Store(n, request.result().winner());
    response->set_generation(Generation(n));
    return grpc::Status::OK;
  };
  daemon_.tune = [this](Context* c, TuneStream* s) { return Tune(c, s, false); };
  daemon_.warm = [this](Context* c, TuneStream* s) { return Tune(c, s, true); };
  daemon_.Start();
}

void FakeTuner::Store(int64_t n, int variant) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stored_[n] = ResultOf(n, variant, stored_[n].generation() + 1);
}

int64_t FakeTuner::Generation(int64_t n) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stored_[n].generation();
}

bool FakeTuner::Knows(const proto::KernelRef& kernel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!kernel.source_text().empty()) {
    if (Sha256Hex(kernel.source_text()) != kernel.text_digest()) std::abort();
    ++sources;
    texts_.insert(kernel.text_digest());
  }
  return texts_.contains(kernel.text_digest());
}

std::string FakeTuner::ArtifactBytes(int variant) const {
  return cards.empty() ? FileBytes(ArtifactPath(variant)) : PtxOf(variant);
}

proto::LaunchPlan FakeTuner::PlanOf(int variant) const {
  proto::LaunchPlan plan;
  plan.set_variant(variant);
  auto* setting = plan.add_settings();
  setting->set_name("BLOCK");
  setting->set_int_value(kBlocks[variant]);
  plan.mutable_artifact()->set_digest(Sha256Hex(ArtifactBytes(variant)));
  plan.mutable_artifact()->set_entry("add");
  if (!cards.empty()) plan.mutable_artifact()->set_threads(128);
  if (!hides_paths && cards.empty()) {
    plan.set_artifact_path(ArtifactPath(file_of < 0 ? variant : file_of.load()));
  }
  for (const char* slot : {"x", "y", "out", "extent:N"}) plan.add_slots(slot);
  return plan;
}

proto::Result FakeTuner::ResultOf(int64_t n, int variant, int64_t generation) const {
  proto::Result result;
  result.set_kernel("add");
  auto* key = result.add_key();
  key->set_name("N");
  key->set_value(n);
  *result.add_extents() = *key;
  result.set_winner(variant);
  *result.mutable_winner_settings() = PlanOf(variant).settings();
  result.set_generation(generation);
  result.set_best_ns(1000);
  for (int i = 0; i < 2; ++i) {
    auto* entry = result.add_variants();
    entry->set_index(i);
    *entry->mutable_settings() = PlanOf(i).settings();
    entry->set_status(i == variant ? proto::VARIANT_STATUS_TIMED
                                   : proto::VARIANT_STATUS_WRONG_RESULT);
    if (i == variant) entry->add_samples_ns(1000);
    if (i != variant) entry->set_reason("out[3]: got 1, want 2\nmore of it");
  }
  return result;
}

grpc::Status FakeTuner::Lookup(const proto::LookupRequest& request,
                               proto::LookupResponse* response) {
  if (!Knows(request.kernel())) {
    response->mutable_need_source();
    return grpc::Status::OK;
  }
  if (request.extents().empty()) {
    ++describes;
    *response->mutable_miss()->mutable_description() = description;
    return grpc::Status::OK;
  }
  ++lookups;
  const int64_t n = ValueOf(request.extents(), "N");
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = stored_.find(n);
  if (found == stored_.end() || found->second.generation() == 0) {
    response->mutable_miss()->set_key("N=" + std::to_string(n));
    return grpc::Status::OK;
  }
  auto* hit = response->mutable_hit();
  *hit->mutable_plan() = PlanOf(found->second.winner());
  hit->set_generation(found->second.generation());
  hit->set_substitution(substitution);
  for (const auto& [name, value] : recorded_extents) {
    auto& extent = *hit->add_recorded_extents();
    extent.set_name(name);
    extent.set_value(value);
  }
  if (request.want_result()) *hit->mutable_result() = found->second;
  return grpc::Status::OK;
}

grpc::Status FakeTuner::Tune(Context* context, TuneStream* stream, bool warm) {
  ++tunes;
  proto::TuneRequest request;
  if (!stream->Read(&request)) return grpc::Status::OK;
  if (!Knows(request.open().kernel())) {
    proto::TuneEvent need;
    need.mutable_need_source();
    stream->Write(need);
    if (!stream->Read(&request)) return grpc::Status::OK;
    if (!Knows(request.open().kernel())) {
      return grpc::Status(grpc::StatusCode::INTERNAL, "no text came");
    }
  }
  const proto::Open open = request.open();
  const int64_t n = ValueOf(open.extents(), "N");
  proto::TuneEvent event;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = open;
    const int64_t newer_than = open.newer_than_generation();
    const proto::Result& stored = stored_[n];
    if (stored.generation() > 0 && (newer_than == 0 || stored.generation() > newer_than)) {
      auto* hit = event.mutable_hit();
      *hit->mutable_plan() = PlanOf(stored.winner());
      hit->set_generation(stored.generation());
      *hit->mutable_result() = stored;
    }
  }
  if (event.has_hit()) {
    stream->Write(event);
    return grpc::Status::OK;
  }
  if (grpc::Status status = Lead(context, stream, open); !status.ok()) return status;
  if (warm) {
    event.mutable_queued()->set_job_id("job");
    stream->Write(event);
    return grpc::Status::OK;
  }
  if (during_tune) {
    if (grpc::Status status = during_tune(context, stream); !status.ok()) return status;
  }
  Store(n, winner);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* done = event.mutable_done();
  *done->mutable_result() = stored_[n];
  *done->mutable_plan() = PlanOf(winner);
  stream->Write(event);
  return grpc::Status::OK;
}

grpc::Status FakeTuner::Lead(Context*, TuneStream* stream, const proto::Open& open) {
  const std::lock_guard<std::mutex> one_at_a_time(leading_);
  proto::Lead lead;
  lead.set_job_id("job");
  int64_t offset = 0;
  int tensor = 0;
  for (const auto& parameter : description.parameters()) {
    auto* buffer = lead.add_buffers();
    buffer->set_parameter(parameter.name());
    buffer->set_segment(1);
    buffer->set_bytes(open.tensor_bytes(tensor++));
    buffer->set_is_written(parameter.is_written());
    buffer->set_offset_bytes(offset);
    offset = After(offset + buffer->bytes());
    if (!parameter.is_written()) continue;
    buffer->set_expected_offset_bytes(offset);
    offset = After(offset + buffer->bytes());
  }
  for (int i = 0; i < description.variants_size(); ++i) lead.add_variants(i);
  auto* grant = lead.add_segments();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool is_held = open.held_segments_size() > 0 && open.held_segments(0) == 1;
    if (ticket_.empty()) ticket_ = side_.Make(kSegmentBytes);
    grant->set_segment(1);
    grant->set_bytes(offset);
    if (!is_held) grant->set_ticket(ticket_);
    lead_ = lead;
  }
  lead.set_takes_cuda_ipc(takes_cuda_ipc);
  proto::TuneEvent event;
  *event.mutable_lead() = lead;
  stream->Write(event);
  proto::TuneRequest request;
  if (!stream->Read(&request)) return grpc::Status(grpc::StatusCode::CANCELLED, "left");
  for (int i = 0; i < leads_again; ++i) {
    event.mutable_lead()->set_takes_cuda_ipc(false);
    stream->Write(event);
    if (!stream->Read(&request)) return grpc::Status(grpc::StatusCode::CANCELLED, "left");
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    args_ = request.args();
  }
  if (during_copy) during_copy();
  event.mutable_args_owned();
  stream->Write(event);
  if (!stream->Read(&request)) return grpc::Status(grpc::StatusCode::CANCELLED, "left");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (request.has_reference_failed()) {
    failure_ = request.reference_failed().message();
    return grpc::Status(grpc::StatusCode::ABORTED, "another caller leads now");
  }
  expected_ = request.expected();
  return grpc::Status::OK;
}

proto::Open FakeTuner::last_open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return open_;
}

proto::Args FakeTuner::last_args() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return args_;
}

proto::Expected FakeTuner::last_expected() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return expected_;
}

std::string FakeTuner::last_reference_failure() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

std::vector<float> FakeTuner::LastArgument(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& buffer : lead_.buffers()) {
    if (buffer.parameter() != name) continue;
    std::vector<float> values(static_cast<size_t>(buffer.bytes()) / sizeof(float));
    std::memcpy(values.data(), side_.Memory(ticket_) + buffer.offset_bytes(),
                static_cast<size_t>(buffer.bytes()));
    return values;
  }
  return {};
}

std::vector<float> FakeTuner::LastExpected(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& buffer : lead_.buffers()) {
    if (buffer.parameter() != name || !buffer.is_written()) continue;
    std::vector<float> values(static_cast<size_t>(buffer.bytes()) / sizeof(float));
    std::memcpy(values.data(), side_.Memory(ticket_) + buffer.expected_offset_bytes(),
                static_cast<size_t>(buffer.bytes()));
    return values;
  }
  return {};
}

}  // namespace phobos::testing
