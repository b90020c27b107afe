/**
 * A backend that waits for the test: packed as a plugin by {@code GatedPlugin}, never on a server's class path.
 *
 * <p>Starting point: {@link dev.nereid.gated.GatedBackendProvider}.
 */
@NullMarked
package dev.nereid.gated;

import org.jspecify.annotations.NullMarked;
