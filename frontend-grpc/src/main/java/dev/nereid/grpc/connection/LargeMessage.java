package dev.nereid.grpc.connection;

import dev.nereid.grpc.wire.EventLoopLimits;
import dev.nereid.grpc.wire.InferMessageReader;
import dev.nereid.grpc.wire.MessageBytes;
import dev.nereid.grpc.wire.MessageDecompressor;
import io.grpc.Detachable;
import io.grpc.HasByteBuffer;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A message detached from the transport to be read by a worker. Confined to one thread at a time; its bytes stay
 * counted until it is closed.
 */
public final class LargeMessage implements AutoCloseable {
    private final InputStream stream;
    private final MessageDecompressor.@Nullable Body body;
    private final int length;
    private @Nullable TransportMemory memory;

    private LargeMessage(
            InputStream stream, MessageDecompressor.@Nullable Body body, int length, @Nullable TransportMemory memory) {
        this.stream = stream;
        this.body = body;
        this.length = length;
        this.memory = memory;
    }

    /**
     * Detaches a message from the transport if it is large or compressed.
     *
     * @param max the maximum length of a message that is not detached
     * @param memory counts the detached message; {@code null} if it is not counted yet
     * @return the message, owned by the caller; {@code null} if it stays with the transport
     * @throws dev.nereid.api.InferenceException if there is no memory for it
     */
    public static @Nullable LargeMessage detachIfLarge(InputStream stream, int max, @Nullable TransportMemory memory)
            throws IOException {
        if (stream instanceof HasByteBuffer && stream instanceof Detachable detachable) {
            int length = stream.available();
            boolean mayBeTyped = max == EventLoopLimits.MAX_COPIED_BYTES
                    && length > EventLoopLimits.MAX_PARSED_BYTES
                    && !isRaw(stream);
            if (length <= max && !mayBeTyped) {
                return null;
            }
            reserve(length, memory);
            return new LargeMessage(detachable.detach(), null, length, memory);
        }
        MessageDecompressor.Body body = MessageDecompressor.detach(stream);
        if (body == null) {
            return null;
        }
        try {
            reserve(body.compressedBytes(), memory);
        } catch (RuntimeException e) {
            body.release();
            throw e;
        }
        return new LargeMessage(body, body, body.compressedBytes(), memory);
    }

    /** Says whether the first bytes of an inference request show raw tensors. Consumes nothing. */
    private static boolean isRaw(InputStream stream) {
        HasByteBuffer source = (HasByteBuffer) stream;
        ByteBuffer first = source.byteBufferSupported() ? source.getByteBuffer() : null;
        return first != null && first.hasRemaining() && InferMessageReader.isRaw(MessageBytes.of(List.of(first)));
    }

    /** Takes the count over from the connection. Counts the message itself if it arrived in one frame. */
    private static void reserve(long bytes, @Nullable TransportMemory memory) {
        ArrivingMessage arrived = ArrivingMessage.CURRENT.get();
        if (memory != null && (arrived == null || !arrived.transfer(bytes))) {
            memory.reserve(bytes);
        }
    }

    /**
     * Counts the message, which is not counted yet, until it is closed.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory for it
     */
    public void count(TransportMemory transport) {
        reserve(length, transport);
        memory = transport;
    }

    InputStream stream() {
        return stream;
    }

    @Override
    public void close() {
        if (memory != null) {
            memory.release(length);
        }
        try {
            if (body != null) {
                body.release();
            } else {
                stream.close();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
