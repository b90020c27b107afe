/**
 * HTTP front end: listener, routes and options.
 *
 * <p>Starting points: {@link dev.nereid.http.HttpFrontend}, which serves an {@link dev.nereid.api.InferenceServer} as
 * {@link dev.nereid.http.HttpOptions} specify. {@code Routes} passes inference requests to their handlers and all
 * others to {@code ControlRouter}. {@code InferHandler} and {@code InferExchange} handle an inference, with
 * {@code InferRequestReader} and {@code InferResponseWriter} for the bodies, {@code JsonReader} and {@code JsonWriter}
 * for JSON.
 *
 * <p>Inference bodies have their own readers and writers; Jackson writes the JSON of control responses. Clients compare
 * error texts, so the reader reports syntax errors with the texts and offsets of the reference server.
 */
@NullMarked
package dev.nereid.http;

import org.jspecify.annotations.NullMarked;
