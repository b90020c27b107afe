package dev.nereid.http.body;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.http.json.JsonFields;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Inflates bodies independently of their pieces, and within their memory limit. */
class BodyInflaterProperties {
    private static final int MAX_BYTES = 100_000;

    @Property(tries = 200)
    void inflatesDeflatedData(
            @ForAll @IntRange(max = MAX_BYTES) int size,
            @ForAll @IntRange(min = 1, max = 3000) int piece,
            @ForAll @IntRange(min = 1, max = 50_000) int maxBytes,
            @ForAll @IntRange(max = 9) int level,
            @ForAll @IntRange(max = 31) int flags,
            @ForAll boolean gzip,
            @ForAll Random random) {
        byte[] data = data(size, random);
        byte[] coded = gzip ? gzip(data, level, flags, random) : deflate(data, level, false);

        try (LeakCheckingMemory memory = new LeakCheckingMemory();
                BodyMemory body = new BodyMemory(memory, RequestBodyHeaders.UNKNOWN, MAX_BYTES, 0)) {
            inflate(coded, body, piece, maxBytes);

            assertThat(body.bytes().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(data);
        }
    }

    @Property(tries = 200)
    void refusesBodiesBeyondTheLimitWithoutAllocatingThem(
            @ForAll @IntRange(min = 1, max = MAX_BYTES) int size,
            @ForAll @IntRange(min = 1, max = 3000) int piece,
            @ForAll boolean gzip,
            @ForAll Random random) {
        byte[] data = data(size, random);
        byte[] coded = gzip ? gzip(data, 6, 0, random) : deflate(data, 6, false);
        long limit = random.nextInt(size);

        // Growing copies the body once.
        try (LeakCheckingMemory memory = new LeakCheckingMemory(2 * limit + 1);
                BodyMemory body = new BodyMemory(memory, RequestBodyHeaders.UNKNOWN, limit, 0)) {
            assertThatThrownBy(() -> inflate(coded, body, piece, MAX_BYTES)).hasMessage("too large");
        }
    }

    @Property(tries = 300)
    void readsOrRefusesAnyBytes(
            @ForAll @IntRange(max = 5000) int size,
            @ForAll @IntRange(min = 1, max = 3000) int piece,
            @ForAll @IntRange(max = 5) int errors,
            @ForAll boolean gzip,
            @ForAll Random random) {
        byte[] data = data(size, random);
        byte[] coded = gzip ? gzip(data, 6, random.nextInt(32), random) : deflate(data, 6, false);
        for (int i = 0; i < errors; i++) {
            coded[random.nextInt(coded.length)] ^= (byte) (1 << random.nextInt(8));
        }
        byte[] cut = Arrays.copyOf(coded, 1 + random.nextInt(coded.length));

        try (LeakCheckingMemory memory = new LeakCheckingMemory();
                BodyMemory body = new BodyMemory(memory, RequestBodyHeaders.UNKNOWN, MAX_BYTES, 0)) {
            inflate(cut, body, piece, MAX_BYTES);
        } catch (InferenceException e) {
            assertThat(e).hasMessageMatching("(?s)too large|Unable to decompress the request: .+");
        }
    }

    private static void inflate(byte[] coded, BodyMemory body, int piece, int maxBytes) {
        try (BodyInflater inflater = new BodyInflater(coded[0], () -> JsonFields.invalid("too large"))) {
            for (int at = 0; at < coded.length; at += piece) {
                inflater.setInput(ByteBuffer.wrap(coded, at, Math.min(piece, coded.length - at)));
                boolean done = inflater.inflate(body, maxBytes);
                while (!done) {
                    done = inflater.inflate(body, maxBytes);
                }
            }
            inflater.finish();
        }
    }

    /** Returns data of varying compressibility. */
    private static byte[] data(int size, Random random) {
        byte[] data = new byte[size];
        random.nextBytes(data);
        int bits = random.nextInt(256);
        for (int i = 0; i < size; i++) {
            data[i] &= (byte) bits;
        }
        return data;
    }

    /** Returns a gzip file whose header has the parts of the flags. */
    private static byte[] gzip(byte[] data, int level, int flags, Random random) {
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        file.writeBytes(new byte[] {0x1F, (byte) 0x8B, 8, (byte) flags, 1, 2, 3, 4, 0, 3});
        if ((flags & 4) != 0) {
            byte[] extra = new byte[random.nextInt(600)];
            file.write(extra.length);
            file.write(extra.length >> 8);
            file.writeBytes(extra);
        }
        if ((flags & 8) != 0) {
            file.writeBytes(new byte[] {'n', 0});
        }
        if ((flags & 16) != 0) {
            file.writeBytes(new byte[] {'c', 'c', 0});
        }
        if ((flags & 2) != 0) {
            file.writeBytes(new byte[] {0, 0});
        }
        file.writeBytes(deflate(data, level, true));
        CRC32 checksum = new CRC32();
        checksum.update(data);
        writeInt(file, checksum.getValue());
        writeInt(file, data.length);
        return file.toByteArray();
    }

    private static void writeInt(ByteArrayOutputStream file, long value) {
        for (int shift = 0; shift < Integer.SIZE; shift += Byte.SIZE) {
            file.write((int) (value >> shift));
        }
    }

    private static byte[] deflate(byte[] data, int level, boolean bare) {
        Deflater deflater = new Deflater(level, bare);
        deflater.setInput(data);
        deflater.finish();
        byte[] coded = new byte[data.length + 1000];
        int size = deflater.deflate(coded);
        assertThat(deflater.finished()).isTrue();
        deflater.end();
        return Arrays.copyOf(coded, size);
    }
}
