/** The streaming method: ordering, flow control and writing of responses. */
@NullMarked
package dev.nereid.grpc.stream;

import org.jspecify.annotations.NullMarked;
