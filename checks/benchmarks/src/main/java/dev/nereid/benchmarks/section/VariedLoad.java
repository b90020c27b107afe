package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.VariedBodies;
import dev.nereid.benchmarks.report.Goal;
import java.util.List;

/**
 * Concurrency and goals of workloads with differing requests on the identity model. Immutable.
 *
 * @param name the name of the requests in the table
 * @param concurrency how many requests are under way at any time
 */
record VariedLoad(String name, VariedBodies bodies, int concurrency) {
    private static final String IDS = "1 KB, an id each";
    private static final String SHAPES = "1 KB, 256 shapes";

    static final List<VariedLoad> ALL = List.of(
            new VariedLoad(IDS, VariedBodies.IDS, 8),
            new VariedLoad(IDS, VariedBodies.IDS, 64),
            new VariedLoad(SHAPES, VariedBodies.MANY_SHAPES, 8),
            new VariedLoad(SHAPES, VariedBodies.MANY_SHAPES, 64));

    /** Returns the goal of the server beside an echo. */
    Goal goal() {
        return new Goal.RateAtLeast(0.7);
    }

    String label() {
        return name + " x " + concurrency;
    }
}
