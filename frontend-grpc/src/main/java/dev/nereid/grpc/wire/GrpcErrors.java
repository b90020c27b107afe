package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Headers;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Maps errors to gRPC statuses. Immutable. */
public final class GrpcErrors {
    private static final Logger LOG = LoggerFactory.getLogger(GrpcErrors.class);

    private static final String OUT_OF_MEMORY =
            "request: no memory to read it (expected: free heap memory); try again later";

    /**
     * The header with the milliseconds that a client waits before a retry. Clients without a retry policy ignore it;
     * see <a href="https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback">pushback</a>.
     */
    private static final Metadata.Key<String> RETRY_PUSHBACK =
            Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);

    private GrpcErrors() {}

    /** Ends a call after its response was sent. */
    public static void succeed(ServerCall<?, ?> call) {
        call.close(Status.OK, new Metadata());
    }

    public static void fail(ServerCall<?, ?> call, InferenceException error) {
        Metadata trailers = new Metadata();
        error.retryAfter().ifPresent(pause -> trailers.put(RETRY_PUSHBACK, Long.toString(pause.toMillis())));
        call.close(status(error), trailers);
    }

    /** Ends a call that failed since the deadline of its client has passed. */
    public static void expire(ServerCall<?, ?> call) {
        call.close(
                Status.DEADLINE_EXCEEDED.withDescription("request was cancelled: deadline exceeded"), new Metadata());
    }

    /** Returns a call that collects its response or error; {@code onComplete} receives the task that sends it. */
    public static <Q, R> ServerCall<Q, R> postponed(ServerCall<Q, R> call, Consumer<Runnable> onComplete) {
        List<Runnable> steps = new ArrayList<>(3);
        return new SimpleForwardingServerCall<>(call) {
            @Override
            public void sendHeaders(Metadata headers) {
                steps.add(() -> super.sendHeaders(headers));
            }

            @Override
            public void sendMessage(R message) {
                steps.add(() -> super.sendMessage(message));
            }

            @Override
            public void close(Status status, Metadata trailers) {
                steps.add(() -> super.close(status, trailers));
                onComplete.accept(() -> {
                    if (!isCancelled()) {
                        steps.forEach(Runnable::run);
                    }
                });
            }
        };
    }

    /** Returns the error for bytes that are no message. */
    public static InferenceException malformed() {
        return InferenceException.clientError("Unable to parse request");
    }

    /** Returns the error for a message that the transport refuses while it reads it, for instance for its size. */
    public static InferenceException refused(StatusRuntimeException refusal) {
        String text = refusal.getStatus().getDescription();
        return text == null ? malformed() : new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }

    /**
     * Logs that the heap had no memory for a request. Returns the error of that request. The log record has no cause,
     * since the log treats such causes as fatal to the process.
     */
    public static InferenceException outOfMemory(OutOfMemoryError error) {
        LOG.atWarn().addKeyValue("error", error.getMessage()).log("no memory to read a request");
        return new InferenceException(ErrorCode.UNAVAILABLE, OUT_OF_MEMORY);
    }

    /** Returns the error with which a stage failed. */
    public static InferenceException error(@Nullable Throwable failure) {
        Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
        if (cause instanceof InferenceException error) {
            return error;
        }
        LOG.atError().setCause(cause).log("method failed");
        return new InferenceException(ErrorCode.INTERNAL, "internal error");
    }

    static String name(InferenceException error) {
        return status(error).getCode().name();
    }

    /** Returns the headers that end a stream without gRPC. gRPC has not seen the stream, or has already closed it. */
    public static Http2Headers http2(InferenceException error, boolean headersSent) {
        Http2Headers headers = new DefaultHttp2Headers();
        if (!headersSent) {
            headers.status("200")
                    .add("content-type", "application/grpc")
                    .add("grpc-accept-encoding", MessageDecompressor.ENCODINGS);
        }
        headers.add("grpc-status", Integer.toString(code(error).getCode().value()));
        headers.add("grpc-message", StatusText.encoded(StatusText.cut(error.publicMessage())));
        error.retryAfter().ifPresent(pause -> headers.add(RETRY_PUSHBACK.name(), Long.toString(pause.toMillis())));
        return headers;
    }

    private static Status status(InferenceException error) {
        Status status = code(error).withDescription(StatusText.cut(error.publicMessage()));
        return error.isClientError() ? status.withCause(error) : status; // the cause is not sent
    }

    private static Status code(InferenceException error) {
        return switch (error.code()) {
            case UNKNOWN -> Status.UNKNOWN;
            case INTERNAL -> Status.INTERNAL;
            case NOT_FOUND -> Status.NOT_FOUND;
            case INVALID_ARGUMENT -> Status.INVALID_ARGUMENT;
            case UNAVAILABLE -> Status.UNAVAILABLE;
            case UNSUPPORTED -> Status.UNIMPLEMENTED;
            case ALREADY_EXISTS -> Status.ALREADY_EXISTS;
            case CANCELLED -> Status.CANCELLED;
        };
    }
}
