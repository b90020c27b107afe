/**
 * What tests of servers and backends share: fakes that behave as their contracts say, and that tell on whoever does
 * not.
 *
 * <p>Starting points: {@link dev.nereid.testkit.LeakCheckingMemory} for every test that handles tensors,
 * {@link dev.nereid.testkit.FakeClock} for every test in which time passes,
 * {@link dev.nereid.testkit.FakeInferenceServer} for every test of a front end, {@link dev.nereid.testkit.ReaderProbe}
 * for every reader of bytes from outside.
 */
@NullMarked
package dev.nereid.testkit;

import org.jspecify.annotations.NullMarked;
