package dev.nereid.scheduler.client;

import dev.nereid.api.ModelRef;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * An execution at this moment. Immutable.
 *
 * @param isDirect whether it runs on a thread that submitted a request, which must not block
 * @param callers the model versions that wait for one of its requests
 */
public record RunningExecution(boolean isDirect, Set<ModelRef> callers) {
    /** Copies the components. */
    public RunningExecution {
        callers = Collections.unmodifiableSet(new LinkedHashSet<>(callers)); // in their order
    }
}
