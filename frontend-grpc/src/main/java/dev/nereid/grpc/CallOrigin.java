package dev.nereid.grpc;

import java.util.OptionalLong;

/**
 * What the requests of one RPC have in common. Immutable.
 *
 * @param deadlineNanos when the client loses interest, on the scale of {@link System#nanoTime()}
 * @param headers the headers that become parameters of the requests
 */
record CallOrigin(OptionalLong deadlineNanos, ForwardedHeaders headers) {}
