"""without_tsan(name, library): a library for a process that has no ThreadSanitizer, also in --config=tsan."""

COPT = "//command_line_option:copt"

LINKOPT = "//command_line_option:linkopt"

MALLOC = "//command_line_option:custom_malloc"

def _plain_impl(settings, attr):
    if "-fsanitize=thread" not in settings[COPT]:
        return settings
    return {
        COPT: [flag for flag in settings[COPT] if flag != "-fsanitize=thread"],
        LINKOPT: [flag for flag in settings[LINKOPT] if flag != "-fsanitize=thread"],
        MALLOC: "@bazel_tools//tools/cpp:malloc",
    }

_plain = transition(
    implementation = _plain_impl,
    inputs = [COPT, LINKOPT, MALLOC],
    outputs = [COPT, LINKOPT, MALLOC],
)

def _without_tsan_impl(ctx):
    files = ctx.attr.library[0][DefaultInfo].files
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

without_tsan = rule(
    implementation = _without_tsan_impl,
    attrs = {
        "library": attr.label(mandatory = True, cfg = _plain, doc = "A cc_binary with linkshared."),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
