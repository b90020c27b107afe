package dev.nereid.benchmarks;

import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** What can be measured. */
enum Section {
    /** Tensors over HTTP. */
    HTTP(true, HttpSection::measure),
    /** Tensors over gRPC. */
    GRPC(false, GrpcSection::measure),
    /** A cheap model. */
    MLP(true, MlpSection::measure),
    /** A model that computes. */
    SQUEEZENET(true, SqueezenetSection::measure),
    /** Start and memory. */
    START(false, StartSection::measure);

    private final boolean needsWrk;
    private final Measurement measurement;

    Section(boolean needsWrk, Measurement measurement) {
        this.needsWrk = needsWrk;
        this.measurement = measurement;
    }

    /** Whether wrk makes the load. */
    boolean needsWrk() {
        return needsWrk;
    }

    /** Measures. Blocks. */
    Table measure(Bench bench) throws IOException, InterruptedException {
        return measurement.measure(bench);
    }

    /** Returns the name on the command line. */
    String flag() {
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

    private interface Measurement {
        Table measure(Bench bench) throws IOException, InterruptedException;
    }
}
