/**
 * HTTP front end: listener, routes and options.
 *
 * <p>Starting points: {@link dev.nereid.http.HttpFrontend}, which serves an {@link dev.nereid.api.InferenceServer} as
 * {@link dev.nereid.http.HttpOptions} say. Within: {@code Routes} finds the handler of a request; {@code InferHandler}
 * and {@code InferExchange} lead one inference from its first byte to its last; {@code InferRequestReader} and
 * {@code InferResponseWriter} know the bodies; {@code JsonReader} and {@code JsonWriter} know JSON.
 *
 * <p>The body of an inference is read and written by hand, everything else is small. Clients match on error texts, so
 * the reader reports syntax errors in the words, and with the offsets, that they know.
 */
@NullMarked
package dev.nereid.http;

import org.jspecify.annotations.NullMarked;
