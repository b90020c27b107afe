/**
 * A backend that paces its responses, as a plugin: alone in its package, so that it can be packed.
 *
 * <p>Starting point: {@link dev.nereid.paced.PacedBackendProvider}.
 */
@NullMarked
package dev.nereid.paced;

import org.jspecify.annotations.NullMarked;
