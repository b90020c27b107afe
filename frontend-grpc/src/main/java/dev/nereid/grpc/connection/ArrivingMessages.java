package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import io.netty.handler.codec.http2.Http2Connection;
import io.netty.handler.codec.http2.Http2Stream;
import org.jspecify.annotations.Nullable;

/**
 * Tracks the arriving messages of one connection's streams and counts the memory that they take. Confined to the event
 * loop of the connection.
 */
final class ArrivingMessages {
    /** What has arrived of a call, as far as it matters for counting. */
    enum Kind {
        /** Many messages may come, and none has. */
        STREAMING,
        /** Many messages may come, and one has. */
        STREAMING_RECEIVED,
        /** One message may come, and has. It was small and is not counted; the limit on calls bounds such messages. */
        SMALL
    }

    private final Http2Connection connection;
    private final TransportMemory memory;
    private final Http2Connection.PropertyKey arriving;
    private final Http2Connection.PropertyKey kind;

    ArrivingMessages(Http2Connection connection, TransportMemory memory) {
        this.connection = connection;
        this.memory = memory;
        this.arriving = connection.newKey();
        this.kind = connection.newKey();
    }

    /** Returns the message of a stream; {@code null} if the stream has none that is tracked. */
    @Nullable
    ArrivingMessage of(Http2Stream stream) {
        return stream.getProperty(arriving);
    }

    /**
     * Tracks the messages of a stream from now on.
     *
     * @param isUnary whether gRPC keeps whole messages
     */
    ArrivingMessage track(Http2Stream stream, boolean isUnary) {
        ArrivingMessage message = new ArrivingMessage(isUnary);
        stream.setProperty(arriving, message);
        return message;
    }

    /** Returns what is known of a call; {@code null} if it is one with one message of which nothing small has come. */
    @Nullable
    Kind kind(Http2Stream stream) {
        return stream.getProperty(kind);
    }

    /** Notes what is known of a call. */
    void mark(Http2Stream stream, Kind known) {
        stream.setProperty(kind, known);
    }

    /** Says whether a call may lack a request: all do but those with many messages of which one has come. */
    boolean isWaitingForRequest(Http2Stream stream) {
        return stream.getProperty(kind) != Kind.STREAMING_RECEIVED;
    }

    /** Returns how many bytes of a stream have arrived that gRPC has not read. */
    int unconsumed(Http2Stream stream) {
        return connection.local().flowController().unconsumedBytes(stream);
    }

    /**
     * Changes the count of a message.
     *
     * @throws InferenceException if there is no memory for it; the count stays as it was
     */
    void count(ArrivingMessage message, long bytes) {
        long more = bytes - message.counted();
        if (more > 0) {
            memory.reserve(more);
        } else if (more < 0) {
            memory.release(-more);
        }
        message.count(bytes);
    }

    /** Ends the count of what gRPC has read of a stream since it arrived. */
    void releaseIfRead(Http2Stream stream) {
        ArrivingMessage message = stream.getProperty(arriving);
        if (message != null) {
            long held = message.held(unconsumed(stream));
            count(message, Math.min(message.counted(), held));
            if (held == 0 && message.isBetweenMessages() && !message.isRefused()) {
                stream.removeProperty(arriving); // frames of whole messages need none
            }
        }
    }
}
