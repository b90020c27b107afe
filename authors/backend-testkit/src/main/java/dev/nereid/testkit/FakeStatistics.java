package dev.nereid.testkit;

import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.ComputeTimings;
import dev.nereid.api.statistics.ExecutionStatistics;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.MetricCounters;
import dev.nereid.api.statistics.MicrosCounters;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.ModelVersionTags;
import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.api.statistics.Timing;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import java.util.List;
import java.util.Map;

/** Model statistics with distinct figures, for tests. Static functions only. */
public final class FakeStatistics {
    private FakeStatistics() {}

    /**
     * Creates the statistics of a version.
     *
     * @param executions the number of executed batches
     * @return the statistics, the same but for these three
     */
    public static ModelStatistics of(String name, long version, long executions) {
        Timing none = Timing.NONE;
        return new ModelStatistics(
                new ModelVersionTags(name, version, Map.of()),
                new ExecutionStatistics(
                        1_795_205_332_817L,
                        7,
                        executions,
                        List.of(
                                new BatchStatistics(1, new ComputeTimings(none, new Timing(2, 50), none)),
                                new BatchStatistics(5, new ComputeTimings(none, none, none)))),
                new InferenceTimings(
                        new Timing(4, 1_045_713),
                        new Timing(1, 20),
                        new Timing(4, 676_129),
                        new ComputeTimings(new Timing(4, 30), new Timing(4, 346_043), new Timing(4, 40)),
                        none,
                        none),
                List.of(new ResponseStatistics(
                        new Timing(6, 60),
                        new Timing(5, 50),
                        new Timing(4, 40),
                        new Timing(3, 30),
                        new Timing(2, 20),
                        new Timing(1, 10))),
                List.of(
                        new MemoryUsage(new MemoryPlace(MemoryPlace.Kind.HOST, 0), 1_000),
                        new MemoryUsage(new MemoryPlace(MemoryPlace.Kind.PINNED, 0), 200),
                        new MemoryUsage(new MemoryPlace(MemoryPlace.Kind.GPU, 1), 5_000_000_000L)),
                new MetricCounters(Map.of(), new MicrosCounters(0, 0, 0, 0, 0, 0, 0), false, 0, 0, 0, List.of()));
    }
}
