/**
 * A backend whose models end the process. {@code GatedPlugin} packs it as a plugin; it is never on a server's class path.
 *
 * <p>Starting point: {@link dev.nereid.crashing.CrashingBackendProvider}.
 */
@NullMarked
package dev.nereid.crashing;

import org.jspecify.annotations.NullMarked;
