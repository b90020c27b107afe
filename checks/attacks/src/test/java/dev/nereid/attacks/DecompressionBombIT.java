package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Tests concurrent bodies that decompress to far more than their size. Six bodies of one megabyte decompress to a
 * gigabyte each; memory limits apply to the decompressed size, during decompression.
 */
final class DecompressionBombIT {
    private static final int CLIENTS = 6;
    private static final int BLOCK = 1 << 20;
    private static final int BLOCKS = 1_000;

    @RegisterExtension
    static final Victim victim = Victim.with();

    @Test
    void gzipOverHttp() throws Exception {
        explode("gzip", gzip());
    }

    @Test
    void deflateOverHttp() throws Exception {
        explode("deflate", zlib());
    }

    @Test
    void gzipOverGrpc() throws Exception {
        explodeOverGrpc("gzip", gzip());
    }

    @Test
    void deflateOverGrpc() throws Exception {
        explodeOverGrpc("deflate", zlib());
    }

    private static void explodeOverGrpc(String encoding, byte[] bomb) throws Exception {
        byte[] message = InferMessage.framed(1, bomb.length, bomb);
        victim.fill(() -> {
            List<String> outcomes = ConcurrentClients.run(CLIENTS, () -> overGrpc(encoding, message));
            assertThat(outcomes).allMatch(outcome -> !outcome.startsWith("0"), "refused");
        });
    }

    private static void explode(String coding, byte[] bomb) throws Exception {
        byte[] request = RawHttp.post(
                RawHttp.path(Models.ECHO), bomb, "Content-Encoding: " + coding, "Inference-Header-Content-Length: 100");
        victim.fill(() -> {
            List<String> outcomes = ConcurrentClients.run(CLIENTS, () -> overHttp(request));
            assertThat(outcomes).allMatch(outcome -> outcome.startsWith("4") || outcome.startsWith("503"), "refused");
        });
    }

    private static String overHttp(byte[] request) throws IOException {
        try (RawHttp connection = RawHttp.connect(victim.server().http())) {
            RawHttp.Response response = connection.exchange(request);
            return response.status() + " " + response.text();
        }
    }

    private static String overGrpc(String encoding, byte[] message) throws IOException {
        try (RawHttp2 connection = RawHttp2.connect(victim.server().grpc())) {
            RawHttp2.Call call =
                    connection.await(connection.begin(Frames.INFER, message, true, "grpc-encoding", encoding));
            return call.status() + " " + call.text();
        }
    }

    private static byte[] gzip() {
        CRC32 sum = new CRC32();
        byte[] zeros = new byte[BLOCK];
        for (int i = 0; i < BLOCKS; i++) {
            sum.update(zeros);
        }
        byte[] trailer = ByteBuffer.allocate(8)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt((int) sum.getValue())
                .putInt(BLOCK * BLOCKS)
                .array();
        return RawHttp.concat(new byte[] {0x1f, (byte) 0x8b, 8, 0, 0, 0, 0, 0, 0, 0}, deflated(), trailer);
    }

    /** The checksum at its end is wrong, but decompression must stop before. */
    private static byte[] zlib() {
        return RawHttp.concat(new byte[] {0x78, (byte) 0x9c}, deflated(), new byte[4]);
    }

    /** Zeros in blocks, all of which but the first are the same. */
    private static byte[] deflated() {
        Deflater deflater = new Deflater(9, true);
        byte[] block = new byte[BLOCK];
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        deflater.setInput(new byte[BLOCK]);
        out.write(block, 0, deflater.deflate(block, 0, BLOCK, Deflater.SYNC_FLUSH));
        deflater.setInput(new byte[BLOCK]);
        int same = deflater.deflate(block, 0, BLOCK, Deflater.SYNC_FLUSH);
        for (int i = 1; i < BLOCKS; i++) {
            out.write(block, 0, same);
        }
        deflater.end();
        out.write(3); // the last block, which is empty
        out.write(0);
        return out.toByteArray();
    }
}
