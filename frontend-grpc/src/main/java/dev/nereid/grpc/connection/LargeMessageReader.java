package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import dev.nereid.grpc.wire.GrpcErrors;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.spi.ErrorCode;
import io.grpc.Attributes;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads large messages on worker threads and returns the result to the event loop. Immutable. */
public final class LargeMessageReader {
    private static final Logger LOG = LoggerFactory.getLogger(LargeMessageReader.class);

    private LargeMessageReader() {}

    /**
     * Outcome of reading a message.
     *
     * @param <R> what is made of messages
     */
    public sealed interface Result<R> {}

    /**
     * A message that was read and converted.
     *
     * @param <R> what is made of messages
     * @param value what was made of it
     */
    public record Done<R>(R value) implements Result<R> {}

    /**
     * A message that could not be read or converted.
     *
     * @param <R> what is made of messages
     * @param error what to tell the client
     */
    public record Failed<R>(InferenceException error) implements Result<R> {}

    /**
     * Converts messages on a worker and receives the result on the event loop.
     *
     * @param <T> the type of the message
     * @param <R> what is made of it
     */
    public interface Callback<T, R> {
        /** Makes something of the message, which is closed afterwards; on a worker. */
        R convert(T message);

        /** Takes what was made, or why there is nothing; on the event loop of the connection. */
        void onResult(Result<R> result);

        /** Gives back the memory of what was made, since the connection has no event loop any more; on any thread. */
        void discard(R made);

        /** Ends the call after {@link #onResult} threw, unless it has ended; on the event loop of the connection. */
        void fail(InferenceException error);
    }

    /**
     * Has a worker read a message, make something of it, and close it.
     *
     * @param later the message, given away
     * @param connection the attributes of its connection
     * @param reading makes something of the message
     */
    public static <T, R> void read(Parsed.Deferred<T> later, Attributes connection, Callback<T, R> reading) {
        GuardedConnection guarded = connection.get(GuardedConnection.KEY);
        if (guarded == null) {
            take(read(later, reading), reading);
            return;
        }
        try {
            guarded.workers().execute(() -> {
                Result<R> result = read(later, reading);
                try {
                    guarded.execute(() -> take(result, reading));
                } catch (RejectedExecutionException _) {
                    discard(result, reading);
                }
            });
        } catch (RejectedExecutionException _) {
            later.bytes().close();
            take(new Failed<>(ShutdownInterceptor.refusal()), reading);
        }
    }

    private static <T, R> void take(Result<R> result, Callback<T, R> reading) {
        try {
            reading.onResult(result);
        } catch (OutOfMemoryError error) {
            reading.fail(GrpcErrors.outOfMemory(error));
        } catch (Throwable failure) {
            reading.fail(new InferenceException(ErrorCode.INTERNAL, "internal error"));
            throw failure; // the event loop logs it
        }
    }

    private static <T, R> void discard(Result<R> result, Callback<T, R> reading) {
        if (result instanceof Done<R>(R made)) {
            reading.discard(made);
        }
    }

    private static <T, R> Result<R> read(Parsed.Deferred<T> later, Callback<T, R> reading) {
        try (LargeMessage _ = later.bytes()) {
            T message = later.read();
            try {
                return new Done<>(reading.convert(message));
            } finally {
                if (message instanceof InferMessage inferMessage) {
                    inferMessage.close();
                }
            }
        } catch (InferenceException error) {
            return new Failed<>(error);
        } catch (OutOfMemoryError error) {
            return new Failed<>(GrpcErrors.outOfMemory(error));
        } catch (RuntimeException | Error error) {
            LOG.atError().setCause(error).log("message not read");
            return new Failed<>(new InferenceException(ErrorCode.INTERNAL, "internal error"));
        }
    }
}
