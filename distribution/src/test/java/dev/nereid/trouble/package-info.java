/**
 * Misbehaving backends: packed as plugins by {@code GatedPlugin}, never on a server's class path.
 *
 * <p>Starting points: {@link dev.nereid.trouble.TroubleBackendProvider}, {@link dev.nereid.trouble.EndlessFunction}.
 */
@NullMarked
package dev.nereid.trouble;

import org.jspecify.annotations.NullMarked;
