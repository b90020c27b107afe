/**
 * A backend whose executions do what their requests say. {@code GatedPlugin} packs it as a plugin; it is never on a server's class path.
 *
 * <p>Starting point: {@link dev.nereid.scripted.ScriptedBackendProvider}.
 */
@NullMarked
package dev.nereid.scripted;

import org.jspecify.annotations.NullMarked;
