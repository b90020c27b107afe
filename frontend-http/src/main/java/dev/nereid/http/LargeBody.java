package dev.nereid.http;

import dev.nereid.api.InferResponse;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.vertx.core.Future;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.internal.buffer.BufferInternal;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * A response body that leaves the server from where its outputs lie. Confined to one event loop; owns the response and
 * closes it once everything was sent, or the connection is gone.
 */
final class LargeBody {
    private final InferResponse response;
    private final long mostAtOnce;
    private final List<ByteBuf> parts = new ArrayList<>();
    private long size;

    /**
     * Begins with the JSON, which is copied.
     *
     * @param response the response, not yet owned
     * @param json the text
     * @param mostAtOnce how many bytes may be sent in one write; a transport buffer counts its bytes in an {@code int}
     */
    LargeBody(InferResponse response, JsonWriter json, long mostAtOnce) {
        this.response = response;
        this.mostAtOnce = mostAtOnce;
        ByteBuf head = PooledByteBufAllocator.DEFAULT.directBuffer(json.size());
        add(head.writeBytes(json.array(), 0, json.size()));
    }

    /** Adds an output, which is not copied. */
    void add(MemorySegment data) {
        for (long at = 0; at < data.byteSize(); at += mostAtOnce) {
            long length = Math.min(mostAtOnce, data.byteSize() - at);
            add(Unpooled.wrappedBuffer(data.asSlice(at, length).asByteBuffer()));
        }
    }

    /** Sends everything as the body of an answer, and takes the response over. */
    void send(HttpServerResponse http) {
        Future<Void> sent;
        try {
            sent = size <= mostAtOnce ? sendAtOnce(http) : sendInParts(http);
        } catch (RuntimeException e) {
            sent = Future.failedFuture(e);
        }
        sent.onComplete(done -> close());
    }

    private Future<Void> sendAtOnce(HttpServerResponse http) {
        // Owns nothing: the parts are released one by one.
        ByteBuf whole = Unpooled.wrappedUnmodifiableBuffer(parts.toArray(ByteBuf[]::new));
        return http.end(BufferInternal.buffer(whole));
    }

    private Future<Void> sendInParts(HttpServerResponse http) {
        http.putHeader(HttpHeaders.CONTENT_LENGTH, Long.toString(size));
        for (ByteBuf part : parts) {
            http.write(BufferInternal.buffer(part));
        }
        return http.end();
    }

    private void add(ByteBuf part) {
        parts.add(part);
        size += part.readableBytes();
    }

    private void close() {
        parts.forEach(ByteBuf::release);
        response.close();
    }
}
