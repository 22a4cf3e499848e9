"""proto_cc(name, srcs, deps, grpc): C++ for .proto files by Debian's protoc. The only generator of this build."""

def proto_cc(name, srcs, deps = [], grpc = False, visibility = None):
    """Generates and compiles C++ for srcs; include as "<path from the workspace root>.pb.h".

    Args:
      name: the cc_library to make.
      srcs: .proto files of this package; they import each other by their path from the workspace root.
      deps: other proto_cc targets whose .proto files srcs import.
      grpc: also generate the service stubs (.grpc.pb.h).
      visibility: of the library.
    """
    native.filegroup(
        name = name + "_srcs",
        srcs = srcs + [dep + "_srcs" for dep in deps],
        visibility = ["//visibility:public"],
    )
    stems = [src[:-len(".proto")] for src in srcs]
    suffixes = [".pb"] + ([".grpc.pb"] if grpc else [])
    headers = [stem + suffix + ".h" for stem in stems for suffix in suffixes]
    sources = [stem + suffix + ".cc" for stem in stems for suffix in suffixes]
    plugin = ("--plugin=protoc-gen-grpc=$(execpath @debian//:bin/grpc_cpp_plugin) --grpc_out=$(GENDIR)" if grpc else "")
    native.genrule(
        name = name + "_gen",
        srcs = [":" + name + "_srcs"] + srcs,
        outs = headers + sources,
        cmd = "$(execpath @debian//:bin/protoc) -I. --cpp_out=$(GENDIR) %s %s" % (
            plugin,
            " ".join(["$(execpath %s)" % src for src in srcs]),
        ),
        tools = [
            "@debian//:bin/protoc",
            "@debian//:bin/grpc_cpp_plugin",
        ],
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["@debian//:protobuf"] + (["@debian//:grpc"] if grpc else []),
    )
