/**
 * A backend for iterative sequences, as a plugin: alone in its package, so that it can be packed.
 *
 * <p>Starting point: {@link dev.nereid.stepping.SteppingBackendProvider}.
 */
@NullMarked
package dev.nereid.stepping;

import org.jspecify.annotations.NullMarked;
