"""clang_tidy: an aspect that lints each of our C++ sources as an action, so that only what changed is linted again."""

def _tidy_action(ctx, src, compilation, headers):
    stamp = ctx.actions.declare_file("%s.%s.tidy" % (ctx.label.name, src.basename))
    flags = ["-std=c++20"]
    flags += ["-D" + define for define in compilation.defines.to_list() + ctx.rule.attr.local_defines]
    flags += ["-iquote" + path for path in compilation.quote_includes.to_list()]
    flags += ["-isystem" + path for path in compilation.system_includes.to_list()]
    ctx.actions.run_shell(
        inputs = depset([src, ctx.file._config] + headers, transitive = [compilation.headers]),
        outputs = [stamp],
        arguments = [stamp.path, src.path, ctx.file._config.path] + flags,
        command = """
stamp=$1 src=$2 config=$3; shift 3
clang-tidy-14 --quiet --config-file="$config" "$src" -- "$@" >"$stamp" 2>&1 || { cat "$stamp"; exit 1; }
: >"$stamp"
""",
        use_default_shell_env = True,
        mnemonic = "ClangTidy",
        progress_message = "Linting " + src.short_path,
        execution_requirements = {"no-sandbox": "1"},  # thousands of LLVM headers would be linked into each
    )
    return stamp

def _tidy_impl(target, ctx):
    stamps = []
    if not ctx.label.workspace_name and ctx.rule.kind in ["cc_library", "cc_binary", "cc_test"]:
        own = [target[CcInfo]] if CcInfo in target else []
        deps = [dep[CcInfo] for dep in ctx.rule.attr.deps if CcInfo in dep]
        compilation = cc_common.merge_cc_infos(cc_infos = own + deps).compilation_context
        headers = [f for f in ctx.rule.files.srcs if f.extension == "h"]
        for src in ctx.rule.files.srcs:
            if src.is_source and src.extension == "cc":
                stamps.append(_tidy_action(ctx, src, compilation, headers))
    return [OutputGroupInfo(tidy = depset(stamps))]

clang_tidy = aspect(
    implementation = _tidy_impl,
    attrs = {
        "_config": attr.label(default = "//:.clang-tidy", allow_single_file = True),
    },
)
