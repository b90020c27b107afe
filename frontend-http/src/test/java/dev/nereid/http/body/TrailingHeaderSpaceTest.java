package dev.nereid.http.body;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The blanks kept of request headers. */
class TrailingHeaderSpaceTest {
    private static final String REQUEST_LINE = "GET / HTTP/1.1\r\n";

    private final TrailingHeaderSpace blanks = new TrailingHeaderSpace();
    private final Object first = new Object();
    private final Object second = new Object();

    @Test
    void keepsBlanksByNameAndOccurrence() {
        header(first, "X-A: 1\r\nx-b: 2 \r\nx-a: 3\t\r\nX-C: \r\nX-D: 4\r\n\r\n");

        assertThat(blanks.of(first)).isEqualTo(Map.of("x-a", List.of("", "\t"), "x-b", List.of(" ")));
    }

    @Test
    void keepsTheBlanksBehindTheLastLineOfAValue() {
        header(first, "X-A: 1 \r\n 2  \r\nX-B: 3 \r\n 4\r\nX-C: 5 \r\n\t \r\n\r\n");

        assertThat(blanks.of(first)).isEqualTo(Map.of("x-a", List.of("  ")));
    }

    @Test
    void keepsNothingBeforeARequest() {
        ByteBuf lineEnd = Unpooled.wrappedBuffer(new byte[] {'\r', '\n'});
        blanks.decoded(lineEnd, 0, 2);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();

        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < 1 << 19; i++) {
            blanks.decoded(lineEnd, 0, 2);
        }
        long allocated = threads.getCurrentThreadAllocatedBytes() - before;

        assertThat(allocated).isLessThan(64 << 10);
        header(first, "X-A: 1 \r\n\r\n");
        assertThat(blanks.of(first)).containsOnlyKeys("x-a");
    }

    @Test
    void keepsNothingOfABody() {
        header(first, "X-A: 1 \r\n\r\n");
        decoded("X-B: 1 \r\n\r\n");
        blanks.requestRead();
        header(second, "X-C: 1 \r\n\r\n");

        assertThat(blanks.of(first)).containsOnlyKeys("x-a");
        assertThat(blanks.of(second)).containsOnlyKeys("x-c");
    }

    @Test
    void dropsARequestAfterItsResponse() {
        header(first, "\r\n");
        blanks.requestRead();
        header(second, "X-A: 1 \r\n\r\n");

        blanks.responseWritten();
        assertThat(blanks.of(second)).isNotEmpty();
        blanks.responseWritten();

        assertThat(blanks.of(second)).isEmpty();
    }

    private void header(Object headers, String lines) {
        decoded(REQUEST_LINE);
        decoded(lines);
        blanks.headerRead(headers);
    }

    private void decoded(String text) {
        ByteBuf bytes = Unpooled.copiedBuffer(text, ISO_8859_1);
        blanks.decoded(bytes, 0, bytes.readableBytes());
    }
}
