/**
 * Timer: runs actions at a later time, without a waiting thread each.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.time.Timer}, the contract;
 * {@link dev.nereid.scheduler.time.TimerThread}, one for each server; {@link dev.nereid.scheduler.time.TimeoutQueue}, a
 * timer without a thread, for tests that control the clock.
 */
@NullMarked
package dev.nereid.scheduler.time;

import org.jspecify.annotations.NullMarked;
