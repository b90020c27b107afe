package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.report.Goal;
import java.util.List;

/**
 * Sizes, concurrency and goals of workloads on the identity model. Immutable.
 *
 * @param size its size in words
 * @param concurrency how many requests are under way at any time
 * @param httpGoal the goal of the server over HTTP, beside an echo that waits for the whole body
 * @param grpcGoal the goal of the server over gRPC, beside an echo of generated messages
 */
record IdentityLoad(InferBody body, String size, int concurrency, Goal httpGoal, Goal grpcGoal) {
    private static final InferBody SMALL = InferBody.of("INPUT0", 1L, 256L);

    /** The size of an image of 224 x 224 pixels. */
    private static final InferBody LARGE = InferBody.of("INPUT0", 1L, 150_528L);

    static final List<IdentityLoad> ALL = List.of(
            small(1),
            small(8),
            small(64),
            large(1, Goal.none(), Goal.none()),
            large(8, new Goal.RateAtLeast(1.5), new Goal.RateAtLeast(0.9)),
            large(64, Goal.none(), Goal.none()));

    private static IdentityLoad small(int concurrency) {
        return new IdentityLoad(SMALL, "1 KB", concurrency, new Goal.RateAtLeast(0.8), new Goal.RateAtLeast(0.9));
    }

    private static IdentityLoad large(int concurrency, Goal httpGoal, Goal grpcGoal) {
        return new IdentityLoad(LARGE, "600 KB", concurrency, httpGoal, grpcGoal);
    }

    String label() {
        return size + " x " + concurrency;
    }

    /** Returns whether the body arrives in many chunks. */
    boolean isLarge() {
        return body == LARGE;
    }
}
