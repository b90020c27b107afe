package dev.nereid.http.generate;

import com.code_intelligence.jazzer.junit.DictionaryEntries;
import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReaderProbe;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Checks that a {@code generate} request with any body is read or refused. */
class GenerateRequestFuzz {
    private static final long MAX_TENSOR_BYTES = 1 << 20;
    /** A tensor takes at most 4 bytes for each byte of text; an invalid one may have been allocated for the rest. */
    private static final int MEMORY_PER_BYTE = 8;

    private static final SharedMemory SHARED = new FakeInferenceServer(new LeakCheckingMemory()).sharedMemory();
    /** Most of the heap is the fuzzer's own, which records compared texts. */
    private static final int HEAP_PER_BYTE = 1000;

    private static final int HEAP = 1 << 20;
    private static final ModelMetadata MODEL = new ModelMetadata(
            "m",
            List.of(1L),
            "fake",
            8,
            true,
            List.of(
                    TensorSpec.of("I", DataType.INT32, Shape.of(-1)),
                    TensorSpec.of("T", DataType.BYTES, Shape.of(1)),
                    TensorSpec.of("F", DataType.FP32, Shape.of(2, -1)),
                    TensorSpec.of("B", DataType.BOOL, Shape.of(0)),
                    TensorSpec.of("U", DataType.UINT64, Shape.of(Long.MAX_VALUE, 3))),
            List.of());

    @FuzzTest
    @DictionaryEntries({
        "{\"I\":[1,2]}",
        "\"T\":\"",
        "\"F\":[[1,2],[3,4]]",
        "\"B\":true",
        "\"U\":[",
        "\"id\":\"",
        "\"parameters\":{",
        "18446744073709551615",
        "null",
        "\\u0000",
        "\\ud83d\\ude00"
    })
    void readsOrRefuses(byte[] json) {
        ReaderProbe probe =
                new ReaderProbe((long) MEMORY_PER_BYTE * json.length + HEAP, (long) HEAP_PER_BYTE * json.length + HEAP);
        probe.run(memory -> {
            RequestMemory requestMemory = new RequestMemory(memory, SHARED);
            try {
                new GenerateRequestReader(MODEL, MemorySegment.ofArray(json), requestMemory, MAX_TENSOR_BYTES)
                        .read(ModelRef.latest("m"), ForwardedHeaders.NONE);
            } finally {
                requestMemory.run();
            }
        });
    }
}
