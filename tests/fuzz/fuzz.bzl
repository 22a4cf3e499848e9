"""fuzz_test(name, fuzzer, seeds, dictionary, seconds): runs a libFuzzer target, its libraries instrumented."""

def _instrumented_impl(settings, attr):
    flags = ["-fsanitize=fuzzer-no-link,address", "-fno-omit-frame-pointer", "-g1"]
    return {
        "//command_line_option:copt": settings["//command_line_option:copt"] + flags,
        "//command_line_option:linkopt": settings["//command_line_option:linkopt"] + ["-fsanitize=fuzzer,address"],
    }

# The flags reach everything that the fuzzer links, so that coverage guides it.
_instrumented = transition(
    implementation = _instrumented_impl,
    inputs = [
        "//command_line_option:copt",
        "//command_line_option:linkopt",
    ],
    outputs = [
        "//command_line_option:copt",
        "//command_line_option:linkopt",
    ],
)

def _fuzz_test_impl(ctx):
    fuzzer = ctx.attr.fuzzer[0][DefaultInfo].files_to_run.executable
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    dictionary = ["-dict=" + ctx.file.dictionary.short_path] if ctx.file.dictionary else []
    ctx.actions.write(
        script,
        content = "\n".join([
            "#!/usr/bin/env bash",
            "set -eu",
            "mkdir -p \"$TEST_TMPDIR/found\" \"$TEST_TMPDIR/seeds\"",
            "cp %s \"$TEST_TMPDIR/seeds\"" % " ".join([f.short_path for f in ctx.files.seeds]),
            # What it finds wrong stays in the test's outputs.
            "exec %s -max_total_time=%d -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \\" % (
                fuzzer.short_path,
                ctx.attr.seconds,
            ),
            "  -artifact_prefix=\"$TEST_UNDECLARED_OUTPUTS_DIR/\" %s \"$TEST_TMPDIR/found\" \"$TEST_TMPDIR/seeds\"" % " ".join(dictionary),
            "",
        ]),
        is_executable = True,
    )
    files = [fuzzer] + ctx.files.seeds + ctx.files.dictionary
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files = files))]

fuzz_test = rule(
    implementation = _fuzz_test_impl,
    test = True,
    attrs = {
        "fuzzer": attr.label(mandatory = True, cfg = _instrumented, doc = "A cc_binary with LLVMFuzzerTestOneInput."),
        "seeds": attr.label_list(allow_files = True, mandatory = True),
        "dictionary": attr.label(allow_single_file = True),
        "seconds": attr.int(default = 60),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
