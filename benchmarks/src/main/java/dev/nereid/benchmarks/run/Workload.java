package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Sample;
import java.io.IOException;
import java.time.Duration;

/** A workload that can be run for a period of time. Confined to the thread that measures. */
public interface Workload {
    /** Returns what is put under load, as the table names it. */
    String name();

    /**
     * Puts it under load for a while. Blocks.
     *
     * @param time how long
     * @return what the load showed
     * @throws IOException if any call failed: a figure with failures in it says nothing
     */
    Sample load(Duration time) throws IOException, InterruptedException;
}
