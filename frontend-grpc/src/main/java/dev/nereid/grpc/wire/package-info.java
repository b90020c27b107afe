/** Reads request messages and writes response messages and errors. */
@NullMarked
package dev.nereid.grpc.wire;

import org.jspecify.annotations.NullMarked;
