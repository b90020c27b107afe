package dev.nereid.http.body;

import dev.nereid.http.json.JsonWriter;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.vertx.core.Context;
import io.vertx.core.Future;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.internal.buffer.BufferInternal;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A response body sent in parts: JSON, then outputs without a copy. Confined to one event loop, except while it is
 * compressed; reports when everything was sent, or the connection is gone, so that the outputs can be released.
 */
public final class ResponseBody implements AutoCloseable {
    /**
     * The maximum size of bodies that an event loop compresses. A worker compresses longer ones: that takes a hundred
     * times as long as sending.
     */
    private static final long MAX_INLINE_COMPRESSION_BYTES = 16 << 10;

    private final long maxWriteBytes;
    private List<ByteBuf> parts = new ArrayList<>();
    /** The number of parts that are pieces of a long JSON text. */
    private int textParts;

    private @Nullable QueuedBytes queued;

    /**
     * Creates a body that begins with JSON, which is copied.
     *
     * @param maxWriteBytes the maximum number of bytes in one write; a transport buffer counts its bytes in an
     *     {@code int}
     */
    public ResponseBody(JsonWriter json, long maxWriteBytes) {
        this.maxWriteBytes = maxWriteBytes;
        ByteBuf header = PooledByteBufAllocator.DEFAULT.directBuffer(json.size());
        add(header.writeBytes(json.array(), 0, json.size()));
    }

    /** Creates a body that begins with pieces of a text, which it owns from now on. */
    public ResponseBody(List<ByteBuf> text, long maxWriteBytes) {
        this.maxWriteBytes = maxWriteBytes;
        parts.addAll(text);
        textParts = text.size();
    }

    /** Counts the pieces of the text while they wait for the client. */
    public void count(QueuedBytes waiting) {
        queued = waiting;
        for (int i = 0; i < textParts; i++) {
            waiting.add(parts.get(i).readableBytes());
        }
    }

    /** Adds an output, which is not copied. */
    public void add(MemorySegment data) {
        for (long at = 0; at < data.byteSize(); at += maxWriteBytes) {
            long length = Math.min(maxWriteBytes, data.byteSize() - at);
            add(Unpooled.wrappedBuffer(data.asSlice(at, length).asByteBuffer()));
        }
    }

    /** Sends everything as the body of a response, and then runs the action that releases the outputs. */
    public void send(HttpServerResponse http, Runnable sentAll) {
        Future<Void> sent;
        try {
            sent = size() <= maxWriteBytes ? sendAtOnce(http) : sendInParts(http);
        } catch (RuntimeException | Error e) {
            sent = Future.failedFuture(e);
        }
        sent.onComplete(done -> {
            close();
            if (done.failed() && !http.closed()) {
                http.reset(); // a part of it may have been sent
            }
            sentAll.run();
        });
    }

    /** Compresses and sends everything, as {@link #send} does; sends it uncompressed if compression fails. */
    public void sendCompressed(HttpServerResponse http, Runnable sentAll, ContentCoding coding, Context context) {
        if (size() <= MAX_INLINE_COMPRESSION_BYTES) {
            replace(BodyDeflater.compress(coding, parts, http::closed), coding, http);
            send(http, sentAll);
            return;
        }
        context.executeBlocking(() -> BodyDeflater.compress(coding, parts, http::closed), false)
                .onComplete(compressed -> {
                    if (compressed.succeeded()) {
                        replace(compressed.result(), coding, http);
                    }
                    send(http, sentAll);
                });
    }

    private void replace(List<ByteBuf> compressed, ContentCoding coding, HttpServerResponse http) {
        close();
        parts = compressed;
        http.putHeader(HttpHeaders.CONTENT_ENCODING, coding.token());
    }

    /** Releases its own memory; the response is not touched. */
    @Override
    public void close() {
        for (int i = 0; i < parts.size(); i++) {
            release(i);
        }
        parts = List.of();
        textParts = 0;
    }

    private void release(int index) {
        if (index < parts.size()) { // otherwise all were released
            ByteBuf part = parts.set(index, Unpooled.EMPTY_BUFFER);
            if (queued != null && index < textParts) {
                queued.add(-part.readableBytes());
            }
            part.release();
        }
    }

    private Future<Void> sendAtOnce(HttpServerResponse http) {
        // Owns nothing: the parts are released one by one.
        ByteBuf whole = Unpooled.wrappedUnmodifiableBuffer(parts.toArray(ByteBuf[]::new));
        return http.end(BufferInternal.buffer(whole));
    }

    private Future<Void> sendInParts(HttpServerResponse http) {
        http.putHeader(HttpHeaders.CONTENT_LENGTH, Long.toString(size()));
        int count = parts.size();
        for (int i = 0; i < count; i++) {
            int index = i;
            http.write(BufferInternal.buffer(parts.get(i))).onComplete(sent -> release(index));
        }
        return http.end();
    }

    private long size() {
        long size = 0;
        for (ByteBuf part : parts) {
            size += part.readableBytes();
        }
        return size;
    }

    private void add(ByteBuf part) {
        parts.add(part);
    }
}
