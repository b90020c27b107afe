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
    /** The kind of a call and of its arrived part, for counting. */
    enum Kind {
        /** A call with any number of messages, none of which has arrived. */
        STREAMING,
        /** A call with any number of messages, one of which has arrived. */
        STREAMING_RECEIVED,
        /** A call with one message that has arrived, small and not counted: the limit on calls bounds such messages. */
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

    /** Tracks the messages of a stream from now on; gRPC keeps whole messages if {@code isUnary}. */
    ArrivingMessage track(Http2Stream stream, boolean isUnary) {
        ArrivingMessage message = new ArrivingMessage(isUnary);
        stream.setProperty(arriving, message);
        return message;
    }

    /** Returns the kind of a call; {@code null} for a call with one message unless it has arrived and is small. */
    @Nullable
    Kind kind(Http2Stream stream) {
        return stream.getProperty(kind);
    }

    void mark(Http2Stream stream, Kind newKind) {
        stream.setProperty(kind, newKind);
    }

    /** Says whether a call may still wait for a request. All calls may, except in state {@code STREAMING_RECEIVED}. */
    boolean isWaitingForRequest(Http2Stream stream) {
        return stream.getProperty(kind) != Kind.STREAMING_RECEIVED;
    }

    /** Returns the number of received bytes of a stream that gRPC has not read. */
    int unconsumed(Http2Stream stream) {
        return connection.local().flowController().unconsumedBytes(stream);
    }

    /**
     * Sets the counted bytes of a message.
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

    /** Ends the count of bytes that gRPC has read of a stream since they arrived. */
    void releaseIfRead(Http2Stream stream) {
        ArrivingMessage message = stream.getProperty(arriving);
        if (message != null) {
            long held = message.held(unconsumed(stream));
            count(message, Math.min(message.counted(), held));
            if (held == 0 && message.isBetweenMessages() && !message.isRefused()) {
                stream.removeProperty(arriving); // frames of whole messages need no tracking
            }
        }
    }
}
