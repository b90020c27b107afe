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

    /** Outcome of reading a message. */
    public sealed interface Result<R> {}

    /** A message that was read and converted. */
    public record Done<R>(R value) implements Result<R> {}

    /** A message that could not be read or converted. */
    public record Failed<R>(InferenceException error) implements Result<R> {}

    /**
     * Converts messages on a worker and receives the result on the event loop.
     *
     * @param <R> the type of results
     */
    public interface Callback<T, R> {
        /** Converts the message, which is closed afterwards. Called on a worker. */
        R convert(T message);

        /** Receives the result or the error. Called on the event loop of the connection. */
        void onResult(Result<R> result);

        /** Releases the memory of a result that the closed connection cannot receive. Called on any thread. */
        void discard(R result);

        /** Fails the call after {@link #onResult} threw, unless it has ended. Called on the connection's event loop. */
        void fail(InferenceException error);
    }

    /** Reads, converts by the callback, and closes a message on a worker; owns the message. */
    public static <T, R> void read(Parsed.Deferred<T> deferred, Attributes connection, Callback<T, R> callback) {
        ConnectionLimits guarded = connection.get(ConnectionLimits.KEY);
        if (guarded == null) {
            deliver(read(deferred, callback), callback);
            return;
        }
        try {
            guarded.workers().execute(() -> {
                Result<R> result = read(deferred, callback);
                try {
                    guarded.execute(() -> deliver(result, callback));
                } catch (RejectedExecutionException _) {
                    discard(result, callback);
                }
            });
        } catch (RejectedExecutionException _) {
            deferred.bytes().close();
            deliver(new Failed<>(ShutdownInterceptor.refusal()), callback);
        }
    }

    private static <T, R> void deliver(Result<R> result, Callback<T, R> callback) {
        try {
            callback.onResult(result);
        } catch (OutOfMemoryError error) {
            callback.fail(GrpcErrors.outOfMemory(error));
        } catch (Throwable failure) {
            callback.fail(new InferenceException(ErrorCode.INTERNAL, "internal error"));
            throw failure; // the event loop logs it
        }
    }

    private static <T, R> void discard(Result<R> result, Callback<T, R> callback) {
        if (result instanceof Done<R>(R value)) {
            callback.discard(value);
        }
    }

    private static <T, R> Result<R> read(Parsed.Deferred<T> deferred, Callback<T, R> callback) {
        try (LargeMessage _ = deferred.bytes()) {
            T message = deferred.read();
            try {
                return new Done<>(callback.convert(message));
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
