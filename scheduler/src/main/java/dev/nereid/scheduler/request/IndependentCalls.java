package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import java.util.Iterator;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;

/** Calls an action for several elements, where the failure of one does not affect the others. Static functions only. */
public final class IndependentCalls {
    private IndependentCalls() {}

    /**
     * Calls an action for all elements, also after a call that throws.
     *
     * @param elements not changed meanwhile
     * @param action what it throws is thrown after the last call; only the last exception, if there are several
     */
    public static <T> void forEach(List<? extends T> elements, Consumer<? super T> action) {
        if (!elements.isEmpty()) {
            forEachOf(elements.iterator(), action);
        }
    }

    private static <T> void forEachOf(Iterator<? extends T> rest, Consumer<? super T> action) {
        try {
            while (rest.hasNext()) {
                action.accept(rest.next());
            }
        } finally {
            if (rest.hasNext()) { // the action has thrown
                forEachOf(rest, action);
            }
        }
    }

    /**
     * Completes the requests that wait with an error. Exceptions are logged.
     *
     * @param error returns the error of a request
     */
    public static void rejectAll(
            List<ScheduledRequest> requests,
            Function<? super ScheduledRequest, InferenceException> error,
            FailureReason reason) {
        forEach(requests, request -> request.rejectQuietly(error.apply(request), reason));
    }
}
