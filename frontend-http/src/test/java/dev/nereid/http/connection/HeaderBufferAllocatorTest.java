package dev.nereid.http.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The buffers in which a response is sent. */
class HeaderBufferAllocatorTest {
    private final EmbeddedChannel channel = new EmbeddedChannel(new HttpResponseEncoder());

    HeaderBufferAllocatorTest() {
        channel.config().setAllocator(new HeaderBufferAllocator(PooledByteBufAllocator.DEFAULT));
    }

    @AfterEach
    void close() {
        channel.finishAndReleaseAll();
    }

    @Test
    void sendsASmallBodyTogetherWithTheHeader() {
        List<String> sent = send(new byte[3000]);

        assertThat(sent).hasSize(1);
        assertThat(sent.getFirst()).startsWith("HTTP/1.1 200 OK").endsWith("\0".repeat(3000));
    }

    @Test
    void sendsALargeBodyWithoutACopy() {
        List<String> sent = send(new byte[100_000]);

        assertThat(sent).extracting(String::length).hasSize(2).last().isEqualTo(100_000);
    }

    @Test
    void allocatesFromThePool() {
        HeaderBufferAllocator allocator = new HeaderBufferAllocator(PooledByteBufAllocator.DEFAULT);

        for (ByteBuf buffer : List.of(allocator.buffer(10), allocator.directBuffer(10), allocator.heapBuffer(10))) {
            assertThat(buffer.alloc()).isSameAs(PooledByteBufAllocator.DEFAULT);
            assertThat(buffer.release()).isTrue();
        }
        assertThat(allocator.isDirectBufferPooled()).isTrue();
    }

    @Test
    void allocatesLittleForChunkHeaders() {
        HttpResponse header = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
        HttpUtil.setTransferEncodingChunked(header, true);
        channel.writeOutbound(header);
        readOutbound();

        channel.writeOutbound(new DefaultHttpContent(Unpooled.wrappedBuffer(new byte[300])));

        ByteBuf size = channel.readOutbound();
        assertThat(size.toString(StandardCharsets.US_ASCII)).isEqualTo("12c\r\n");
        assertThat(size.capacity()).isLessThan(64);
        size.release();
    }

    private List<String> send(byte[] body) {
        channel.writeOutbound(
                new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK, Unpooled.wrappedBuffer(body)));
        return readOutbound();
    }

    private List<String> readOutbound() {
        List<String> sent = new ArrayList<>();
        for (ByteBuf next = channel.readOutbound(); next != null; next = channel.readOutbound()) {
            sent.add(next.toString(StandardCharsets.US_ASCII));
            next.release();
        }
        return sent;
    }
}
