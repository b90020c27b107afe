/** Sequences of requests to stateful models: which instance they are on, and the batches of that instance. */
@NullMarked
package dev.nereid.scheduler.sequence;

import org.jspecify.annotations.NullMarked;
