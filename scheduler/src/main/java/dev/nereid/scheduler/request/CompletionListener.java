package dev.nereid.scheduler.request;

import java.util.Optional;
import java.util.function.Supplier;

/**
 * Receives the terminal response of an executed request before its observer does. Not called for a request that is
 * rejected in a queue, refused, or completed without an execution.
 */
public interface CompletionListener {
    /**
     * Called when the models that execute a request to an ensemble are known, before its completion. Must be short, and
     * must not block or throw.
     *
     * @param executing returns the identity of their content; empty if it is not known
     */
    default void executedBy(Supplier<Optional<String>> executing) {}

    /** Called by the thread that completes the request. Must be short, and must not block or throw. */
    void completed(ResponseEvent event);
}
