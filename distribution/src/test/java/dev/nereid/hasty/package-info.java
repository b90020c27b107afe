/**
 * A backend with short executions that tests control. {@code GatedPlugin} packs it as a plugin; it is never on a
 * server's class path.
 *
 * <p>Starting point: {@link dev.nereid.hasty.HastyBackendProvider}.
 */
@NullMarked
package dev.nereid.hasty;

import org.jspecify.annotations.NullMarked;
