package dev.nereid.scheduler.client;

import dev.nereid.api.ModelRef;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * An execution at this moment. Immutable.
 *
 * @param isShort whether the backend declares it short, so that it must not block: it may run on a thread that submitted a
 *     request
 * @param callers the model versions that wait for one of its requests
 */
public record RunningExecution(boolean isShort, Set<ModelRef> callers) {
    /** Copies the components. */
    public RunningExecution {
        callers = Collections.unmodifiableSet(new LinkedHashSet<>(callers)); // in their order
    }
}
