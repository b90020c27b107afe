package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Sample;
import java.io.IOException;
import java.time.Duration;

/** A workload that can be run for a period of time. Confined to the thread that measures. */
public interface Workload {
    String name();

    /** Puts it under load for a while. Blocks. Fails if any request failed: a figure with failures is invalid. */
    Sample load(Duration time) throws IOException, InterruptedException;
}
