package dev.nereid.http.infer;

import com.code_intelligence.jazzer.junit.DictionaryEntries;
import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReaderProbe;
import java.lang.foreign.MemorySegment;

/** Checks that a JSON body of any content is read or refused. */
class InferRequestFuzz {
    private static final long MAX_TENSOR_BYTES = 1 << 20;
    /** A tensor takes at most 4 bytes for each byte of text; an invalid one may have been allocated for the rest. */
    private static final int MEMORY_PER_BYTE = 8;

    private static final SharedMemory SHARED = new FakeInferenceServer(new LeakCheckingMemory()).sharedMemory();
    /** Most of the heap is the fuzzer's own, which records compared texts. */
    private static final int HEAP_PER_BYTE = 1000;

    private static final int HEAP = 1 << 20;

    @FuzzTest
    @DictionaryEntries({
        "\"inputs\":[{",
        "\"outputs\":[{",
        "\"parameters\":{",
        "\"id\":",
        "\"name\":",
        "\"shape\":[",
        "\"datatype\":",
        "\"data\":[",
        "\"binary_data_size\":",
        "\"binary_data\":",
        "\"binary_data_output\":",
        "\"classification\":",
        "\"shared_memory_region\":",
        "\"shared_memory_offset\":",
        "\"shared_memory_byte_size\":",
        "\"sequence_id\":",
        "\"sequence_start\":",
        "\"priority\":",
        "\"timeout\":",
        "\"BYTES\"",
        "\"FP16\"",
        "\"BF16\"",
        "\"FP32\"",
        "\"FP64\"",
        "\"BOOL\"",
        "\"INT8\"",
        "\"INT64\"",
        "\"UINT64\"",
        "18446744073709551615",
        "9223372036854775807",
        "-9223372036854775808",
        "1e308",
        "1e-400",
        "NaN",
        "Infinity",
        "true",
        "false",
        "null",
        "\\u0000",
        "\\ud83d\\ude00",
        "\\ud800"
    })
    void readsOrRefuses(byte[] json) {
        ReaderProbe probe =
                new ReaderProbe((long) MEMORY_PER_BYTE * json.length + HEAP, (long) HEAP_PER_BYTE * json.length + HEAP);
        probe.run(memory -> {
            RequestMemory requestMemory = new RequestMemory(memory, SHARED);
            try {
                new InferRequestReader("m", MemorySegment.ofArray(json), json.length, requestMemory, MAX_TENSOR_BYTES)
                        .read();
            } finally {
                requestMemory.run();
            }
        });
    }
}
