/**
 * Statistics of models: counts and times of requests, executions and responses. Independent of queues and batches:
 * receives outcomes and times.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.statistics.ModelMeter}, one for each version of a model that serves;
 * {@link dev.nereid.scheduler.statistics.ExecutionTally}, the statistics of one execution.
 */
@NullMarked
package dev.nereid.scheduler.statistics;

import org.jspecify.annotations.NullMarked;
