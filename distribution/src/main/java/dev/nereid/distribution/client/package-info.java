/**
 * Requests of the command line to a running server.
 *
 * <p>Starting point: {@link dev.nereid.distribution.client.ServerClient}.
 */
@NullMarked
package dev.nereid.distribution.client;

import org.jspecify.annotations.NullMarked;
