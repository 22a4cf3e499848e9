// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/services.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/verbs/verbs.h"
#include "proto/phobos/tuner/v1/admin.grpc.pb.h"
#include "proto/phobos/tuner/v1/cache.grpc.pb.h"
#include "proto/phobos/tuner/v1/tuner.grpc.pb.h"

namespace phobos::rpc {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

grpc::Status Unimplemented(const std::string& verb, const std::string& instead) {
  return ToGrpc(
      absl::UnimplementedError(absl::StrCat(verb, " is not available in this version; ", instead)));
}

ServerUnaryReactor* Refuse(CallbackServerContext* context, const std::string& verb,
                           const std::string& instead) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(Unimplemented(verb, instead));
  return reactor;
}

// A streaming call that ends at once.
template <typename Reactor>
class Refusal : public Reactor {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

class Tuner final : public tuner::v1::TunerService::CallbackService {
 public:
  explicit Tuner(Door& door) : door_(door) {}

  ServerUnaryReactor* Hello(CallbackServerContext* context, const tuner::v1::HelloRequest* request,
                            tuner::v1::HelloResponse* response) override {
    return rpc::Hello(door_, context, *request, *response);
  }
  ServerUnaryReactor* Lookup(CallbackServerContext* context,
                             const tuner::v1::LookupRequest* request,
                             tuner::v1::LookupResponse* response) override {
    return rpc::Lookup(door_, context, *request, *response);
  }
  grpc::ServerBidiReactor<tuner::v1::TuneRequest, tuner::v1::TuneEvent>* Tune(
      CallbackServerContext* context) override {
    return rpc::Tune(door_, context);
  }
  ServerUnaryReactor* Compile(CallbackServerContext* context,
                              const tuner::v1::CompileRequest* request,
                              tuner::v1::CompileResponse* response) override {
    return rpc::Compile(door_, context, *request, *response);
  }
  grpc::ServerWriteReactor<tuner::v1::ArtifactChunk>* GetArtifact(
      CallbackServerContext* context, const tuner::v1::GetArtifactRequest* request) override {
    return rpc::GetArtifact(door_, context, *request);
  }
  ServerUnaryReactor* Cancel(CallbackServerContext* context,
                             const tuner::v1::CancelRequest* request,
                             tuner::v1::CancelResponse*) override {
    return rpc::Cancel(door_, context, *request);
  }
  ServerUnaryReactor* Adopt(CallbackServerContext* context, const tuner::v1::AdoptRequest*,
                            tuner::v1::AdoptResponse*) override {
    return Refuse(context, "Adopt", "tune here instead");
  }
  grpc::ServerBidiReactor<tuner::v1::TuneRequest, tuner::v1::TuneEvent>* Warm(
      CallbackServerContext*) override {
    return new Refusal<grpc::ServerBidiReactor<tuner::v1::TuneRequest, tuner::v1::TuneEvent>>(
        Unimplemented("Warm", "call Tune"));
  }

 private:
  Door& door_;
};

class Cache final : public tuner::v1::CacheService::CallbackService {
 public:
  explicit Cache(Door& door) : door_(door) {}

  ServerUnaryReactor* ListResults(CallbackServerContext* context,
                                  const tuner::v1::ListResultsRequest* request,
                                  tuner::v1::ListResultsResponse* response) override {
    return rpc::ListResults(door_, context, *request, *response);
  }
  ServerUnaryReactor* GetResult(CallbackServerContext* context,
                                const tuner::v1::GetResultRequest* request,
                                tuner::v1::GetResultResponse* response) override {
    return rpc::GetResult(door_, context, *request, *response);
  }
  ServerUnaryReactor* Explain(CallbackServerContext* context, const tuner::v1::ExplainRequest*,
                              tuner::v1::ExplainResponse*) override {
    return Refuse(context, "Explain", "compare the key texts of GetResult");
  }
  ServerUnaryReactor* DeleteResults(CallbackServerContext* context,
                                    const tuner::v1::DeleteResultsRequest*,
                                    tuner::v1::DeleteResultsResponse*) override {
    return Refuse(context, "DeleteResults", "tune again with force to replace a Result");
  }
  grpc::ServerWriteReactor<tuner::v1::ExportChunk>* Export(
      CallbackServerContext*, const tuner::v1::ExportRequest*) override {
    return new Refusal<grpc::ServerWriteReactor<tuner::v1::ExportChunk>>(
        Unimplemented("Export", "page through ListResults and GetResult"));
  }
  grpc::ServerReadReactor<tuner::v1::ExportChunk>* Import(CallbackServerContext*,
                                                          tuner::v1::ImportResponse*) override {
    return new Refusal<grpc::ServerReadReactor<tuner::v1::ExportChunk>>(
        Unimplemented("Import", "tune here instead"));
  }
  ServerUnaryReactor* Prune(CallbackServerContext* context, const tuner::v1::PruneRequest*,
                            tuner::v1::PruneResponse*) override {
    return Refuse(context, "Prune", "the daemon's --artifact-bytes keeps the cache small");
  }
  ServerUnaryReactor* Pin(CallbackServerContext* context, const tuner::v1::PinRequest*,
                          tuner::v1::PinResponse*) override {
    return Refuse(context, "Pin", "launches take the current generation");
  }
  ServerUnaryReactor* Unpin(CallbackServerContext* context, const tuner::v1::PinRequest*,
                            tuner::v1::PinResponse*) override {
    return Refuse(context, "Unpin", "launches take the current generation");
  }

 private:
  Door& door_;
};

class Admin final : public tuner::v1::AdminService::CallbackService {
 public:
  explicit Admin(Door& door) : door_(door) {}

  ServerUnaryReactor* GetStatus(CallbackServerContext* context, const tuner::v1::GetStatusRequest*,
                                tuner::v1::GetStatusResponse* response) override {
    return rpc::GetStatus(door_, context, *response);
  }
  ServerUnaryReactor* ListDevices(CallbackServerContext* context,
                                  const tuner::v1::ListDevicesRequest*,
                                  tuner::v1::ListDevicesResponse* response) override {
    return rpc::ListDevices(door_, context, *response);
  }
  grpc::ServerWriteReactor<tuner::v1::Event>* WatchEvents(
      CallbackServerContext*, const tuner::v1::WatchEventsRequest*) override {
    return new Refusal<grpc::ServerWriteReactor<tuner::v1::Event>>(
        Unimplemented("WatchEvents", "ask GetStatus now and then"));
  }
  ServerUnaryReactor* Drain(CallbackServerContext* context, const tuner::v1::DrainRequest*,
                            tuner::v1::DrainResponse*) override {
    return Refuse(context, "Drain", "SIGTERM stops the daemon; stored Results stay");
  }

 private:
  Door& door_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Door& door) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<Tuner>(door));
  services.push_back(std::make_unique<Cache>(door));
  services.push_back(std::make_unique<Admin>(door));
  return services;
}

}  // namespace phobos::rpc
