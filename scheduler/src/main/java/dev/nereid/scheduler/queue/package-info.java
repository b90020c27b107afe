/** Queues: waiting requests by priority, their deadlines, and the idle instances that take batches. */
@NullMarked
package dev.nereid.scheduler.queue;

import org.jspecify.annotations.NullMarked;
