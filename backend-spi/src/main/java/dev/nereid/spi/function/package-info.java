/**
 * Functions that say by annotations what they are: the shortest form of a plugin.
 *
 * <p>Starting point: {@link dev.nereid.spi.function.AnnotatedFunction}, a class with one method and a
 * {@link dev.nereid.spi.function.BackendFunction} annotation. If annotation processing is switched on,
 * {@link dev.nereid.spi.function.FunctionProcessor} writes the service file of the plugin and reports mistakes at compile
 * time; without it, the class is named in {@code META-INF/services/dev.nereid.spi.BackendProvider} by hand, and mistakes
 * are reported when the server finds the plugin.
 */
@NullMarked
package dev.nereid.spi.function;

import org.jspecify.annotations.NullMarked;
