package dev.nereid.scheduler.request;

/**
 * Sees the terminal response of an executed request before its observer does. Not called for a request that is rejected
 * in a queue, refused, or completed without an execution.
 */
public interface CompletionListener {
    /** Called by the thread that completes the request. Must be short, and must not block or throw. */
    void completed(ResponseEvent event);
}
