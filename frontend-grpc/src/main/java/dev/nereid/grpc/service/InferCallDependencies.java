package dev.nereid.grpc.service;

import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.grpc.connection.TransportMemory;
import dev.nereid.grpc.wire.CallContext;
import dev.nereid.grpc.wire.InferRequestAssembler;
import dev.nereid.grpc.wire.ResponseCompressor;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Metadata;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.regex.Pattern;

/**
 * Dependencies shared by the ModelInfer and ModelStreamInfer methods. Immutable.
 *
 * @param forwardedHeaders the pattern found in the names of headers that become request parameters
 * @param transportMemory counts large messages
 */
public record InferCallDependencies(
        InferRequestAssembler assembler,
        Optional<Pattern> forwardedHeaders,
        ResponseCompressor compression,
        TransportMemory transportMemory,
        LongSupplier nanoTime) {
    /** Returns the context that all requests of the current call share. */
    public CallContext callContext(Metadata headers) {
        Deadline deadline = Context.current().getDeadline();
        OptionalLong nanos = deadline == null
                ? OptionalLong.empty()
                : OptionalLong.of(nanoTime.getAsLong() + deadline.timeRemaining(TimeUnit.NANOSECONDS));
        return new CallContext(
                nanos,
                forwardedHeaders
                        .map(pattern -> CallContext.forwardedHeaders(headers, pattern))
                        .orElse(ForwardedHeaders.NONE),
                compression.encoding(headers));
    }
}
