package dev.nereid.scheduler.client;

import java.util.Collection;
import org.jspecify.annotations.Nullable;

/**
 * The executions that occupy an instance at a moment. They are known by identity.
 *
 * @param running the execution that has not returned; {@code null} for none
 * @param returns whether it is deferred, so that it returns soon unless its thread waits
 * @param deferred the deferred executions that have returned and not ended; of any thread
 * @param maxDeferred the number of deferred executions at which the instance begins no other one
 */
public record InstanceUse(@Nullable Object running, boolean returns, Collection<?> deferred, int maxDeferred) {}
