package dev.nereid.benchmarks.run;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** The sections of a run. */
public enum Section {
    /** Tensors over HTTP. */
    HTTP(true),
    /** Tensors over HTTP as JSON. */
    JSON(true),
    /** The JSON reader and writer in isolation. */
    CODEC(false),
    /** Requests in process, without a server. */
    SCHEDULER(false),
    /** Requests of sequences. */
    SEQUENCES(false),
    /** Requests through several models. */
    ENSEMBLES(true),
    /** Requests that wait. */
    WAITING(false),
    /** Tensors in shared memory. */
    SHM(true),
    /** Tensors over HTTP, encrypted. */
    TLS(true),
    /** Tensors over gRPC. */
    GRPC(false),
    /** A cheap model. */
    MLP(true),
    /** The same, with batches and without. */
    BATCHING(true),
    /** A model that computes. */
    SQUEEZENET(true),
    /** Models of TensorFlow beside its C API. */
    TENSORFLOW(false),
    /** Models of PyTorch beside calls of their modules. */
    PYTORCH(false),
    /** Python models beside an exchange of the same bytes. */
    PYTHON(false),
    /** Start and memory. */
    START(false),
    /** Many models without requests. */
    MODELS(false),
    /** The first minute under load. */
    MINUTE(true);

    private final boolean needsWrk;

    Section(boolean needsWrk) {
        this.needsWrk = needsWrk;
    }

    public boolean needsWrk() {
        return needsWrk;
    }

    /** Returns the name on the command line. */
    public String flag() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Finds a section by its name on the command line. */
    static Section of(String flag) {
        return Arrays.stream(values())
                .filter(section -> section.flag().equals(flag))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("--only: '" + flag + "' (expected: some of "
                        + Arrays.stream(values()).map(Section::flag).collect(Collectors.joining(",")) + ")"));
    }
}
