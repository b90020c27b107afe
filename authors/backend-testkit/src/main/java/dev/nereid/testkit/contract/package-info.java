/**
 * The contract of backends as a JUnit test, and models in memory without a server.
 *
 * <p>Starting points: {@link dev.nereid.testkit.contract.BackendContract}, which the test of a backend extends, and
 * {@link dev.nereid.testkit.contract.LocalModel}, which runs one model in a unit test.
 */
@NullMarked
package dev.nereid.testkit.contract;

import org.jspecify.annotations.NullMarked;
