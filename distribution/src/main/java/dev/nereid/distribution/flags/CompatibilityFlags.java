package dev.nereid.distribution.flags;

import java.util.Optional;

/** Flags of the reference server without effect, so that command lines for it work here. Static functions only. */
final class CompatibilityFlags {
    private static final String NOT_SHARED = "several servers do not share a port";
    private static final String NO_TRACE = "traces are not supported yet";
    private static final String NO_SAGEMAKER = "there is no SageMaker endpoint";
    private static final String NO_VERTEX_AI = "there is no Vertex AI endpoint";

    private static final FlagValue<String> BYTES_OF_GPU =
            form("GPU:BYTES", "the number of a GPU, a colon and a number of bytes, as in 0:67108864", "\\d+:\\d+");

    private static final FlagValue<String> ANY = form("TEXT", "a text", ".*");

    private CompatibilityFlags() {}

    static void declare(Flags flags) {
        add(flags, "--reuse-http-port", FlagValue.TRUTH, NOT_SHARED, "Whether several servers share the HTTP port.");
        add(flags, "--reuse-grpc-port", FlagValue.TRUTH, NOT_SHARED, "Whether several servers share the gRPC port.");
        String plugins = "they are plugins of --backend-directory";
        add(flags, "--repoagent-directory", FlagValue.DIRECTORY, plugins, "A directory of repository agents.");
        String threads = "threads of instances do";
        add(flags, "--buffer-manager-thread-count", FlagValue.NUMBER, threads, "How many threads copy tensors.");
        String states = "states on a GPU do not grow yet";
        String range = "The size of the address range of growable states on a GPU.";
        add(flags, "--cuda-virtual-address-size", BYTES_OF_GPU, states, range);
        add(flags, "--trace-config", FlagValue.SETTING, NO_TRACE, "A setting of traces.");
        add(flags, "--trace-file", ANY, NO_TRACE, "The file of traces.");
        add(flags, "--trace-level", ANY, NO_TRACE, "What traces contain.");
        add(flags, "--trace-rate", ANY, NO_TRACE, "The rate of traced requests.");
        add(flags, "--trace-count", ANY, NO_TRACE, "The number of traces.");
        add(flags, "--trace-log-frequency", ANY, NO_TRACE, "How many traces a file contains.");
        addRefused(flags, "--allow-sagemaker", NO_SAGEMAKER, "Whether there is a SageMaker endpoint.");
        add(flags, "--sagemaker-port", FlagValue.PORT, NO_SAGEMAKER, "Its port.");
        add(flags, "--sagemaker-safe-port-range", ANY, NO_SAGEMAKER, "The ports that it may use.");
        add(flags, "--sagemaker-thread-count", FlagValue.COUNT, NO_SAGEMAKER, "Its threads.");
        addRefused(flags, "--allow-vertex-ai", NO_VERTEX_AI, "Whether there is a Vertex AI endpoint.");
        add(flags, "--vertex-ai-port", FlagValue.PORT, NO_VERTEX_AI, "Its port.");
        add(flags, "--vertex-ai-thread-count", FlagValue.COUNT, NO_VERTEX_AI, "Its threads.");
        add(flags, "--vertex-ai-default-model", ANY, NO_VERTEX_AI, "Its model.");
    }

    /**
     * Adds a flag of the reference server that has no effect here. Its value is checked, and a line says why.
     *
     * @param description its effect on the reference server
     */
    static void add(Flags flags, String name, FlagValue<?> value, String unused, String description) {
        flags.add(name, value, _ -> {})
                .help(description + " Accepted for compatibility, without effect: " + unused + ".")
                .notice("accepted, without effect: " + unused);
    }

    /** Adds a flag that can only be off, since a client would wait for the missing feature. */
    private static void addRefused(Flags flags, String name, String reason, String description) {
        FlagValue<Boolean> off = new FlagValue<>(
                FlagValue.TRUTH.label(),
                "false: " + reason + "; the HTTP port serves the KServe protocol",
                text -> FlagValue.TRUTH.reader().apply(text).filter(on -> !on));
        flags.add(name, off, _ -> {}).help(description + " Only false: " + reason + ".");
    }

    private static FlagValue<String> form(String label, String expected, String pattern) {
        return new FlagValue<>(label, expected, text -> Optional.of(text).filter(value -> value.matches(pattern)));
    }
}
