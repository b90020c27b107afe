package dev.nereid.http.body;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.LeakCheckingMemory;
import io.netty.buffer.Unpooled;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A body allocates memory for received bytes only. */
class BodyMemoryTest {
    private static final long LIMIT = 2L << 30;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @Test
    void allocatesNothingForAContentLength() {
        BodyMemory body = new BodyMemory(memory, 50_000_000, LIMIT, 0);

        assertThat(memory.buffersInUse()).isZero();
        body.close();
    }

    @ParameterizedTest
    @CsvSource({
        "50000000, 1000, 4096",
        "50000000, 60000, 65536",
        "1000000, 1000, 4096",
        "65536, 1, 4096",
        "2000000000, 1000, 4096",
        "-1, 1000, 4096",
        "-1, 100000, 131072",
    })
    void allocatesLittleMoreThanReceived(long declared, int arrived, long allocated) {
        BodyMemory body = new BodyMemory(memory, declared, LIMIT, 0);
        body.append(Unpooled.wrappedBuffer(new byte[arrived]), arrived);

        assertThat(memory.bytesInUse()).isEqualTo(allocated);
        body.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 1000, 65_536})
    void allocatesExactlyASmallBodyReceivedAtOnce(int size) {
        BodyMemory body = new BodyMemory(memory, size, LIMIT, 0);
        body.append(Unpooled.wrappedBuffer(new byte[size]), size);

        assertThat(memory.bytesInUse()).isEqualTo(size);
        body.close();
    }

    @ParameterizedTest
    @CsvSource({"1, 0", "1, 63", "1000, 60", "4096, 1", "65536, 63"})
    void allocatesTheOffsetToo(int size, int offset) {
        BodyMemory body = new BodyMemory(memory, size, LIMIT, offset);
        body.append(Unpooled.wrappedBuffer(new byte[size]), size);

        assertThat(memory.bytesInUse()).isEqualTo(offset + size);
        body.close();
    }

    @ParameterizedTest
    @CsvSource({"100, 0", "100, 63", "4096, 1", "262144, 63", "300000, 63"})
    void offersMemoryUpToItsLimitOnly(int limit, int offset) {
        BodyMemory body = new BodyMemory(memory, RequestBodyHeaders.UNKNOWN, limit, offset);
        while (body.writable().byteSize() > 0) {
            body.advance((int) body.writable().byteSize());
        }

        assertThat(body.size()).isEqualTo(limit);
        assertThat(memory.bytesInUse()).isEqualTo(offset + limit);
        body.close();
    }

    @ParameterizedTest
    @CsvSource({
        "100, true, 0",
        "70000, true, 0",
        "600000, true, 0",
        "3000000, true, 0",
        "100, false, 0",
        "600000, false, 0",
        "100, true, 63",
        "70000, true, 5",
        "600000, true, 1",
        "100, false, 7",
        "600000, false, 33"
    })
    void keepsItsBytesWhileItGrows(int size, boolean isDeclared, int offset) {
        byte[] data = new byte[size];
        new Random(size).nextBytes(data);
        BodyMemory body = new BodyMemory(memory, isDeclared ? size : RequestBodyHeaders.UNKNOWN, LIMIT, offset);
        for (int at = 0; at < size; at += 10_007) {
            byte[] chunk = Arrays.copyOfRange(data, at, Math.min(size, at + 10_007));
            body.append(Unpooled.wrappedBuffer(chunk), chunk.length);
            assertThat(memory.bytesInUse()).isLessThanOrEqualTo(Math.max(4096, 2 * (offset + body.size())));
            assertThat(body.bytes().address() % 64).isEqualTo(offset);
        }

        assertThat(body.bytes().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(data);
        body.take().orElseThrow().close();
        body.close();
    }
}
