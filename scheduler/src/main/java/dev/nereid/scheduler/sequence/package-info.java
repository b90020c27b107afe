/** Sequences of requests to stateful models: their instances, and the batches of each instance. */
@NullMarked
package dev.nereid.scheduler.sequence;

import org.jspecify.annotations.NullMarked;
