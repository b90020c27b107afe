package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import io.grpc.Attributes;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads messages that take an event loop too long. Immutable. */
final class InferMessages {
    private static final Logger LOG = LoggerFactory.getLogger(InferMessages.class);

    private InferMessages() {}

    /**
     * What became of a message.
     *
     * @param <R> what is made of messages
     */
    sealed interface Result<R> {}

    /**
     * A message that was read.
     *
     * @param <R> what is made of messages
     * @param made what was made of it
     */
    record Done<R>(R made) implements Result<R> {}

    /**
     * A message that was refused.
     *
     * @param <R> what is made of messages
     * @param error what to tell the client
     */
    record Failed<R>(InferenceException error) implements Result<R> {}

    /**
     * What makes something of messages that workers read.
     *
     * @param <T> the type of the message
     * @param <R> what is made of it
     */
    interface Reading<T, R> {
        /** Makes something of the message, which is closed afterwards; on a worker. */
        R make(T message);

        /** Takes what was made, or why there is nothing; on the event loop of the connection. */
        void take(Result<R> result);

        /** Gives back the memory of what was made, since the connection has no event loop any more; on any thread. */
        void discard(R made);

        /** Ends the call after {@link #take} threw, unless it has ended; on the event loop of the connection. */
        void fail(InferenceException error);
    }

    /**
     * Has a worker read a message, make something of it, and close it.
     *
     * @param later the message, given away
     * @param connection the attributes of its connection
     * @param reading makes something of the message
     */
    static <T, R> void read(Parsed.Later<T> later, Attributes connection, Reading<T, R> reading) {
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
            take(new Failed<>(Stopping.refusal()), reading);
        }
    }

    private static <T, R> void take(Result<R> result, Reading<T, R> reading) {
        try {
            reading.take(result);
        } catch (OutOfMemoryError error) {
            reading.fail(GrpcErrors.outOfMemory(error));
        } catch (Throwable failure) {
            reading.fail(new InferenceException(ErrorCode.INTERNAL, "internal error"));
            throw failure; // the event loop logs it
        }
    }

    private static <T, R> void discard(Result<R> result, Reading<T, R> reading) {
        if (result instanceof Done<R>(R made)) {
            reading.discard(made);
        }
    }

    private static <T, R> Result<R> read(Parsed.Later<T> later, Reading<T, R> reading) {
        try (LargeMessage _ = later.bytes()) {
            T message = later.read();
            try {
                return new Done<>(reading.make(message));
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
