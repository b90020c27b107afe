/**
 * An example backend that returns its inputs.
 *
 * <p>Starting points: {@link dev.nereid.examples.identity.IdentityBackendProvider}, named in the jar's
 * {@code META-INF/services}, which leads to the backend, the model and its instances.
 */
@NullMarked
package dev.nereid.examples.identity;

import org.jspecify.annotations.NullMarked;
