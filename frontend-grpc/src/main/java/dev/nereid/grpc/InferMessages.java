package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import io.grpc.Attributes;
import java.util.function.Consumer;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads messages that take an event loop too long. Immutable. */
final class InferMessages {
    private static final Logger LOG = LoggerFactory.getLogger(InferMessages.class);

    private static final String NO_MEMORY =
            "request: no memory to read it (expected: room on the heap); try again later";

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
     * Has a worker read a message, make something of it, and close it.
     *
     * @param <T> the type of the message
     * @param <R> what is made of it
     * @param later the message, given away
     * @param connection the attributes of its connection
     * @param use makes something of the message, on a worker
     * @param then takes the result, on the event loop of the connection
     */
    static <T, R> void read(
            Parsed.Later<T> later, Attributes connection, Function<T, R> use, Consumer<Result<R>> then) {
        GuardedConnection guarded = connection.get(GuardedConnection.KEY);
        if (guarded == null) {
            then.accept(read(later, use));
        } else {
            guarded.elsewhere(() -> read(later, use), then);
        }
    }

    private static <T, R> Result<R> read(Parsed.Later<T> later, Function<T, R> use) {
        try (LargeMessage _ = later.bytes()) {
            T message = later.read();
            try {
                return new Done<>(use.apply(message));
            } finally {
                if (message instanceof InferMessage inferMessage) {
                    inferMessage.close();
                }
            }
        } catch (InferenceException error) {
            return new Failed<>(error);
        } catch (OutOfMemoryError error) {
            LOG.atWarn().setCause(error).log("no memory to read a message");
            return new Failed<>(new InferenceException(ErrorCode.UNAVAILABLE, NO_MEMORY));
        } catch (RuntimeException error) {
            LOG.atError().setCause(error).log("message not read");
            return new Failed<>(new InferenceException(ErrorCode.INTERNAL, "internal error"));
        }
    }
}
