/**
 * Statistics of models: counts and times of requests, executions and responses. Knows nothing of queues and batches: it
 * is told outcomes and times.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.statistics.ModelMeter}, one for each version of a model that serves;
 * {@link dev.nereid.scheduler.statistics.ExecutionTally}, what one execution adds to it.
 */
@NullMarked
package dev.nereid.scheduler.statistics;

import org.jspecify.annotations.NullMarked;
