/**
 * Fakes for tests of servers, front ends and backends, which fail on violated contracts.
 *
 * <p>Starting points: {@link dev.nereid.testkit.LeakCheckingMemory} for every test that handles tensors,
 * {@link dev.nereid.testkit.FakeClock} for every test in which time passes,
 * {@link dev.nereid.testkit.FakeInferenceServer} for every test of a front end, {@link dev.nereid.testkit.ReaderProbe}
 * for every reader of bytes from outside.
 */
@NullMarked
package dev.nereid.testkit;

import org.jspecify.annotations.NullMarked;
