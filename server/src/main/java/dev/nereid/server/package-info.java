/**
 * The server as a library: a running server inside a Java program, without sockets.
 *
 * <p>Starting point: {@link dev.nereid.server.NereidServer}.
 */
@NullMarked
package dev.nereid.server;

import org.jspecify.annotations.NullMarked;
