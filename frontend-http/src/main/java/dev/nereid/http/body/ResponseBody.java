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
 * coded; tells once everything was sent, or the connection is gone, so that the outputs can be given back.
 */
public final class ResponseBody implements AutoCloseable {
    /** More is coded by a worker: coding takes a hundred times as long as sending. */
    private static final long MAX_INLINE_COMPRESSION_BYTES = 16 << 10;

    private final long maxWriteBytes;
    private List<ByteBuf> parts = new ArrayList<>();
    /** How many of the parts are pieces of a long text, and where those are counted that wait. */
    private int textParts;

    private @Nullable QueuedBytes queued;

    /**
     * Begins with the JSON, which is copied.
     *
     * @param json the text
     * @param mostAtOnce how many bytes may be sent in one write; a transport buffer counts its bytes in an {@code int}
     */
    public ResponseBody(JsonWriter json, long mostAtOnce) {
        this.maxWriteBytes = mostAtOnce;
        ByteBuf head = PooledByteBufAllocator.DEFAULT.directBuffer(json.size());
        add(head.writeBytes(json.array(), 0, json.size()));
    }

    /**
     * Begins with pieces of a text, which are taken over.
     *
     * @param text the pieces
     * @param mostAtOnce how many bytes may be sent in one write
     */
    public ResponseBody(List<ByteBuf> text, long mostAtOnce) {
        this.maxWriteBytes = mostAtOnce;
        parts.addAll(text);
        textParts = text.size();
    }

    /** Counts the pieces of the text as long as they wait for the client. */
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

    /**
     * Adds a copy of an output that lies in shared memory. Only here is the end of such memory an error like others:
     * native code that reads it dies of it, and the process too.
     */
    public void addCopy(MemorySegment data) {
        long step = Math.min(maxWriteBytes, 1 << 20);
        for (long at = 0; at < data.byteSize(); at += step) {
            int length = (int) Math.min(step, data.byteSize() - at);
            ByteBuf copy = PooledByteBufAllocator.DEFAULT.directBuffer(length);
            add(copy);
            MemorySegment.ofBuffer(copy.nioBuffer(0, length)).copyFrom(data.asSlice(at, length));
            copy.writerIndex(length);
        }
    }

    /**
     * Sends everything as the body of an answer.
     *
     * @param http the answer
     * @param sentAll run when the outputs are not needed any more
     */
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

    /** Sends everything coded, as {@link #send} does; as it is if that fails. */
    public void sendCompressed(HttpServerResponse http, Runnable sentAll, ContentCoding coding, Context context) {
        if (size() <= MAX_INLINE_COMPRESSION_BYTES) {
            replace(BodyDeflater.compress(coding, parts, http::closed), coding, http);
            send(http, sentAll);
            return;
        }
        context.executeBlocking(() -> BodyDeflater.compress(coding, parts, http::closed), false)
                .onComplete(coded -> {
                    if (coded.succeeded()) {
                        replace(coded.result(), coding, http);
                    }
                    send(http, sentAll);
                });
    }

    private void replace(List<ByteBuf> coded, ContentCoding coding, HttpServerResponse http) {
        close();
        parts = coded;
        http.putHeader(HttpHeaders.CONTENT_ENCODING, coding.token());
    }

    /** Gives its own memory back; the response is not touched. */
    @Override
    public void close() {
        for (int i = 0; i < parts.size(); i++) {
            release(i);
        }
        parts = List.of();
        textParts = 0;
    }

    private void release(int index) {
        if (index < parts.size()) { // otherwise all were
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
