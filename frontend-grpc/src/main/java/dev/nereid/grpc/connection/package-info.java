/** Connections, messages in transit, and limits on what they hold. */
@NullMarked
package dev.nereid.grpc.connection;

import org.jspecify.annotations.NullMarked;
