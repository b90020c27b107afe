/**
 * Alarms: something to be done at a moment to come, without a thread that waits for it.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.time.Timer}, the contract;
 * {@link dev.nereid.scheduler.time.TimerThread}, one for each server; {@link dev.nereid.scheduler.time.Alarms}, the
 * same without a thread, for tests that move the clock.
 */
@NullMarked
package dev.nereid.scheduler.time;

import org.jspecify.annotations.NullMarked;
