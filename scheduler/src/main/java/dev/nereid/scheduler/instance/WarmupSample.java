package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.request.CheckedRequest;
import java.util.List;
import java.util.function.Supplier;

/**
 * Requests that an instance executes before it serves. Immutable.
 *
 * @param name the sample's name in the configuration
 * @param executions the number of executions; at least 1
 * @param batch creates the requests that are executed together, each of one item; called for each execution, on the
 *     thread of the instance
 */
public record WarmupSample(String name, int executions, Supplier<List<CheckedRequest>> batch) {
    public WarmupSample {
        requireNonNull(name, "name");
        requireNonNull(batch, "batch");
        if (executions < 1) {
            throw new IllegalArgumentException("executions: " + executions + " (expected: >= 1)");
        }
    }
}
