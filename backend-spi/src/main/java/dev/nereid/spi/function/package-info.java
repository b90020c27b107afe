/**
 * Functions: the shortest form of a plugin, one class with one method.
 *
 * <p>Starting point: {@link dev.nereid.spi.function.TensorFunction} with a
 * {@link dev.nereid.spi.function.BackendFunction} annotation. {@link dev.nereid.spi.function.AsyncTensorFunction} waits
 * without holding a thread, and {@link dev.nereid.spi.function.StreamingFunction} sends any number of responses.
 *
 * <p>If annotation processing is switched on, {@link dev.nereid.spi.function.FunctionProcessor} writes the service file of
 * the plugin and reports mistakes at compile time. Without it, the class is named in
 * {@code META-INF/services/dev.nereid.spi.BackendProvider} by hand, and mistakes are reported when the server finds the
 * plugin.
 */
@NullMarked
package dev.nereid.spi.function;

import org.jspecify.annotations.NullMarked;
