/**
 * Schedulers: one for each model version, with its configuration. Knows no transport, no protobuf, no file system.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.ModelScheduler}, one for each version of a model that serves;
 * {@link dev.nereid.scheduler.request.CheckedRequest}, what is scheduled; {@link dev.nereid.scheduler.BatchingPolicy},
 * which says how batches are made.
 */
@NullMarked
package dev.nereid.scheduler;

import org.jspecify.annotations.NullMarked;
