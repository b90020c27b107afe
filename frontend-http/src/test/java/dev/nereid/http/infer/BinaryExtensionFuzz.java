package dev.nereid.http.infer;

import com.code_intelligence.jazzer.junit.DictionaryEntries;
import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.RequestBody;
import dev.nereid.http.body.RequestBodyHeaders;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReaderProbe;
import io.vertx.core.buffer.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * Checks that each body is read or refused. Bodies are JSON and bytes, or bytes alone, in any pieces, compressed or
 * not.
 */
class BinaryExtensionFuzz {
    private static final BodyLimits LIMITS = new BodyLimits(1 << 16, 1 << 18, 256 << 10);
    private static final List<ModelMetadata> MODELS = List.of(
            model(0, TensorSpec.of("X", DataType.FP32, Shape.of(-1))),
            model(8, TensorSpec.of("X", DataType.INT16, Shape.of(2, -1, 3))),
            model(8, TensorSpec.of("X", DataType.BYTES, Shape.of(1))),
            model(0, TensorSpec.of("X", DataType.FP64, Shape.of(-1, 0))),
            model(0, TensorSpec.of("X", DataType.UINT8, Shape.of(-1, -1))),
            model(0, TensorSpec.of("X", DataType.BOOL, Shape.of(-1)), TensorSpec.of("Y", DataType.BF16, Shape.of(2))));
    /** Model and coding, size of a piece, and the declared length of the JSON. */
    private static final int HEADER = 2 + Integer.BYTES;
    /**
     * The body doubles as it grows; besides it there are tensors of JSON, which takes at most 8 bytes for one of text.
     */
    private static final int MEMORY_PER_BYTE = 12;

    private static final SharedMemory SHARED = new FakeInferenceServer(new LeakCheckingMemory()).sharedMemory();
    /** Most of the heap is the fuzzer's own, which records compared texts. */
    private static final int HEAP_PER_BYTE = 1000;

    private static final int HEAP = 1 << 20;

    /**
     * The first byte selects a model and, from 128 on, a compressed body; the second is the size of pieces, the next
     * four are the length of the JSON.
     */
    @FuzzTest
    @DictionaryEntries({
        "\"inputs\":[{",
        "\"outputs\":[{",
        "\"parameters\":{",
        "\"name\":",
        "\"shape\":[",
        "\"datatype\":",
        "\"data\":[",
        "\"binary_data_size\":",
        "\"binary_data\":true",
        "\"binary_data_output\":true",
        "\"FP32\"",
        "\"BYTES\"",
        "18446744073709551615",
        "9223372036854775807"
    })
    void readsOrRefuses(byte[] bytes) {
        if (bytes.length < HEADER) {
            return;
        }
        long size = isCompressed(bytes) ? LIMITS.maxRequestBytes() : bytes.length;
        ReaderProbe probe = new ReaderProbe(MEMORY_PER_BYTE * size + HEAP, HEAP_PER_BYTE * size + HEAP);
        probe.run(memory -> read(bytes, memory));
    }

    private static boolean isCompressed(byte[] bytes) {
        return bytes[0] < 0;
    }

    private static void read(byte[] bytes, TensorMemory memory) {
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        ModelMetadata model = MODELS.get((in.get() & 0x7F) % MODELS.size());
        int piece = Byte.toUnsignedInt(in.get());
        long length = piece % 2 == 0 ? RequestBodyHeaders.UNKNOWN : in.remaining() - Integer.BYTES;
        ContentCoding coding = isCompressed(bytes) ? ContentCoding.GZIP : ContentCoding.IDENTITY;
        RequestBodyHeaders headers = new RequestBodyHeaders(length, in.getInt(), coding);
        RequestMemory requestMemory = new RequestMemory(memory, SHARED);
        try (RequestBody body = new RequestBody(memory, headers, LIMITS)) {
            while (in.hasRemaining()) {
                byte[] next = new byte[Math.min(piece + 1, in.remaining())];
                in.get(next);
                for (boolean all = body.append(Buffer.buffer(next)); !all; ) {
                    all = body.inflateMore();
                }
            }
            body.finish();
            read(model, headers, body, requestMemory);
        } finally {
            requestMemory.run();
        }
    }

    private static void read(ModelMetadata model, RequestBodyHeaders headers, RequestBody body, RequestMemory memory) {
        long jsonLength = headers.jsonLength(body.size());
        if (jsonLength == 0) {
            new RawRequestReader(model).read(body.bytes(), memory);
        } else {
            new InferRequestReader("m", body.bytes(), jsonLength, memory, LIMITS.maxJsonBytes()).read();
        }
    }

    private static ModelMetadata model(int maxBatchSize, TensorSpec... inputs) {
        return new ModelMetadata("m", List.of(1L), "p", maxBatchSize, false, List.of(inputs), List.of());
    }
}
