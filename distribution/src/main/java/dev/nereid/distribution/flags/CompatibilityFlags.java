package dev.nereid.distribution.flags;

import java.util.Optional;

/**
 * Flags of the reference server that have no effect here, so that command lines written for it work. Static functions
 * only.
 */
final class CompatibilityFlags {
    private static final String NO_TRACE = "traces are not supported yet";
    private static final String NO_SAGEMAKER = "there is no SageMaker endpoint";
    private static final String NO_VERTEX_AI = "there is no Vertex AI endpoint";

    private static final FlagValue<String> BYTES_OF_GPU =
            form("GPU:BYTES", "the number of a GPU, a colon and a number of bytes, as in 0:67108864", "\\d+:\\d+");

    private static final FlagValue<String> ANY = form("TEXT", "a text", ".*");

    private CompatibilityFlags() {}

    /** Adds the flags. */
    static void declare(Flags flags) {
        declarePorts(flags);
        declareGpus(flags);
        declareTraces(flags);
        declareClouds(flags);
    }

    private static void declarePorts(Flags flags) {
        String notShared = "several servers do not share a port";
        flags.add(
                Flag.withoutEffect(
                        "--reuse-http-port",
                        FlagValue.TRUTH,
                        "Whether several servers share the HTTP port.",
                        notShared),
                Flag.withoutEffect(
                        "--reuse-grpc-port",
                        FlagValue.TRUTH,
                        "Whether several servers share the gRPC port.",
                        notShared),
                Flag.withoutEffect(
                        "--repoagent-directory",
                        FlagValue.DIRECTORY,
                        "A directory of repository agents.",
                        "they are plugins of --backend-directory"),
                Flag.withoutEffect(
                        "--buffer-manager-thread-count",
                        FlagValue.NUMBER,
                        "How many threads copy tensors.",
                        "threads of instances do"));
    }

    private static void declareGpus(Flags flags) {
        flags.add(Flag.withoutEffect(
                "--cuda-virtual-address-size",
                BYTES_OF_GPU,
                "The size of the address range of growable states on a GPU.",
                "states on a GPU do not grow yet"));
    }

    private static void declareTraces(Flags flags) {
        flags.add(
                Flag.withoutEffect("--trace-config", FlagValue.SETTING, "A setting of traces.", NO_TRACE),
                Flag.withoutEffect("--trace-file", ANY, "The file of traces.", NO_TRACE),
                Flag.withoutEffect("--trace-level", ANY, "What traces contain.", NO_TRACE),
                Flag.withoutEffect("--trace-rate", ANY, "The rate of traced requests.", NO_TRACE),
                Flag.withoutEffect("--trace-count", ANY, "The number of traces.", NO_TRACE),
                Flag.withoutEffect("--trace-log-frequency", ANY, "How many traces a file contains.", NO_TRACE));
    }

    private static void declareClouds(Flags flags) {
        flags.add(
                refused("--allow-sagemaker", "Whether there is a SageMaker endpoint.", NO_SAGEMAKER),
                Flag.withoutEffect("--sagemaker-port", FlagValue.PORT, "Its port.", NO_SAGEMAKER),
                Flag.withoutEffect("--sagemaker-safe-port-range", ANY, "The ports that it may use.", NO_SAGEMAKER),
                Flag.withoutEffect("--sagemaker-thread-count", FlagValue.COUNT, "Its threads.", NO_SAGEMAKER),
                refused("--allow-vertex-ai", "Whether there is a Vertex AI endpoint.", NO_VERTEX_AI),
                Flag.withoutEffect("--vertex-ai-port", FlagValue.PORT, "Its port.", NO_VERTEX_AI),
                Flag.withoutEffect("--vertex-ai-thread-count", FlagValue.COUNT, "Its threads.", NO_VERTEX_AI),
                Flag.withoutEffect("--vertex-ai-default-model", ANY, "Its model.", NO_VERTEX_AI));
    }

    /** Declares a flag that can only be off, since a client would wait for the missing feature. */
    private static Flag refused(String name, String description, String reason) {
        FlagValue<Boolean> off = new FlagValue<>(
                FlagValue.TRUTH.label(),
                "false: " + reason + "; the HTTP port serves the KServe protocol",
                text -> FlagValue.TRUTH.reader().apply(text).filter(on -> !on));
        return Flag.of(name, off, description + " Only false: " + reason + ".", _ -> {});
    }

    private static FlagValue<String> form(String label, String expected, String pattern) {
        return new FlagValue<>(label, expected, text -> Optional.of(text).filter(value -> value.matches(pattern)));
    }
}
