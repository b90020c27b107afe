/**
 * A backend that waits for the test. {@code GatedPlugin} packs it as a plugin; it is never on a server's class path.
 *
 * <p>Starting point: {@link dev.nereid.gated.GatedBackendProvider}.
 */
@NullMarked
package dev.nereid.gated;

import org.jspecify.annotations.NullMarked;
