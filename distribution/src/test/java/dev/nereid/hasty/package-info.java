/**
 * A backend that calls its executions short, and does what the test wants: packed as a plugin by {@code GatedPlugin},
 * never on a server's class path as such.
 *
 * <p>Starting point: {@link dev.nereid.hasty.HastyBackendProvider}.
 */
@NullMarked
package dev.nereid.hasty;

import org.jspecify.annotations.NullMarked;
