package dev.nereid.scheduler.client;

import dev.nereid.api.call.CallChain;

/**
 * An execution at this moment. Immutable.
 *
 * @param isShort whether the backend declares it short, so that it must not block: it may run on a thread that submitted a
 *     request
 * @param chain the call chain of a request for which its thread waits: the models of its requests' chains without its
 *     own, and the execution
 */
public record RunningExecution(boolean isShort, CallChain chain) {}
