package dev.nereid.benchmarks;

import java.io.IOException;
import java.time.Duration;

/** Something that can be put under load. Confined to the thread that measures. */
interface Contender {
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
