/**
 * A backend with short executions that tests control: packed as a plugin by {@code GatedPlugin}, never on a server's
 * class path.
 *
 * <p>Starting point: {@link dev.nereid.hasty.HastyBackendProvider}.
 */
@NullMarked
package dev.nereid.hasty;

import org.jspecify.annotations.NullMarked;
