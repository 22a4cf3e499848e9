"""Links Debian's static archives into a target, as inputs of the link, so that an upgrade of a package relinks."""

def _static_archives_impl(ctx):
    flags = ["-Wl,--start-group"] + [f.path for f in ctx.files.archives] + ["-Wl,--end-group"] + ctx.attr.linkopts
    linker_input = cc_common.create_linker_input(
        owner = ctx.label,
        user_link_flags = depset(flags),
        additional_inputs = depset(ctx.files.archives),
    )
    compilation = cc_common.create_compilation_context(
        system_includes = depset([ctx.label.workspace_root + "/" + i for i in ctx.attr.includes]),
        headers = depset(ctx.files.hdrs),
    )
    return [CcInfo(
        compilation_context = compilation,
        linking_context = cc_common.create_linking_context(linker_inputs = depset([linker_input])),
    )]

static_archives = rule(
    implementation = _static_archives_impl,
    attrs = {
        "archives": attr.label_list(allow_files = [".a"], mandatory = True),
        "hdrs": attr.label_list(allow_files = True),
        "includes": attr.string_list(),
        "linkopts": attr.string_list(),
    },
    provides = [CcInfo],
)
