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
 * @param assembler makes calls of messages
 * @param forwardedHeaders found in the names of the headers that become parameters of requests
 * @param compression how answers are compressed
 * @param transportMemory where long messages are counted
 * @param nanoTime the clock
 */
public record InferCallDependencies(
        InferRequestAssembler assembler,
        Optional<Pattern> forwardedHeaders,
        ResponseCompressor compression,
        TransportMemory transportMemory,
        LongSupplier nanoTime) {
    /** Returns what the requests of the current RPC have in common. */
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
