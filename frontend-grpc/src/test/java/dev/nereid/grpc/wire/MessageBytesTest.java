package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.testkit.LeakCheckingMemory;
import io.grpc.KnownLength;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that streams without access to their buffers are copied. */
final class MessageBytesTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    /** A stream of the transport that arrived in small fragments. */
    private static final class Fragments extends ByteArrayInputStream implements KnownLength {
        Fragments(byte[] content) {
            super(content);
        }
    }

    private static byte[] content(int size) {
        byte[] content = new byte[size];
        new Random(size).nextBytes(content);
        return content;
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 8192, 65_536, 65_537, 1_000_000})
    void copiesStreamsOfUnknownLength(int size) throws IOException {
        assertCopied(content(size), new ByteArrayInputStream(content(size)));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 8193, 1_000_000})
    void copiesStreamsOfKnownLengthIntoOnePiece(int size) throws IOException {
        assertCopied(content(size), new Fragments(content(size)));

        try (MessageBytes _ = MessageBytes.of(new Fragments(content(size)), memory)) {
            assertThat(memory.bytesInUse()).isEqualTo(size);
        }
    }

    private void assertCopied(byte[] expected, InputStream stream) throws IOException {
        try (MessageBytes bytes = MessageBytes.of(stream, memory)) {
            byte[] copy = new byte[expected.length];
            assertThat(bytes.length()).isEqualTo(expected.length);
            bytes.copyTo(new ByteRange(0, expected.length), MemorySegment.ofArray(copy));
            assertThat(copy).isEqualTo(expected);
        }
    }

    @Test
    void releasesMemoryIfTheStreamFails() throws IOException {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(packed)) {
            gzip.write(content(100_000));
        }
        byte[] half = Arrays.copyOf(packed.toByteArray(), packed.size() / 2);
        InputStream broken = new GZIPInputStream(new ByteArrayInputStream(half));

        assertThatThrownBy(() -> MessageBytes.of(broken, memory)).isInstanceOf(EOFException.class);
        assertThat(memory.bytesInUse()).isZero();
    }
}
