/**
 * Schedulers: one for each model version, with its configuration. Independent of transport, protobuf and file system.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.ModelScheduler}, one for each version of a model that serves;
 * {@link dev.nereid.scheduler.request.CheckedRequest}, the scheduled request;
 * {@link dev.nereid.scheduler.BatchingPolicy}, which configures batches.
 */
@NullMarked
package dev.nereid.scheduler;

import org.jspecify.annotations.NullMarked;
