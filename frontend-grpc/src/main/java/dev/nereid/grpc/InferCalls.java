package dev.nereid.grpc;

import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Metadata;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.regex.Pattern;

/**
 * What the two methods that infer have in common. Immutable.
 *
 * @param assembler makes calls of messages
 * @param forwarded found in the names of the headers that become parameters of requests
 * @param compression how answers are compressed
 * @param transport where long messages are counted
 * @param nanoTime the clock
 */
record InferCalls(
        CallAssembler assembler,
        Optional<Pattern> forwarded,
        ResponseCompressor compression,
        TransportMemory transport,
        LongSupplier nanoTime) {
    /** Returns what the requests of the current RPC have in common. */
    CallOrigin origin(Metadata headers) {
        Deadline deadline = Context.current().getDeadline();
        OptionalLong nanos = deadline == null
                ? OptionalLong.empty()
                : OptionalLong.of(nanoTime.getAsLong() + deadline.timeRemaining(TimeUnit.NANOSECONDS));
        return new CallOrigin(
                nanos,
                forwarded.map(pattern -> ForwardedHeaders.of(headers, pattern)).orElse(ForwardedHeaders.NONE),
                compression.encoding(headers));
    }
}
