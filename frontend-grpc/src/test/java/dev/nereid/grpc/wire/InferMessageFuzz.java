package dev.nereid.grpc.wire;

import com.code_intelligence.jazzer.junit.DictionaryEntries;
import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.nereid.api.ModelRef;
import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.grpc.testing.TestMessages;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.ReaderProbe;
import java.io.ByteArrayInputStream;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/** Fuzzes the request reader against the generated class. */
class InferMessageFuzz {
    private static final int MAX_INPUT_BYTES = 1 << 20;
    /** A number takes 8 bytes for one on the wire, and an input a piece of memory of its own, for 6 bytes or more. */
    private static final int MEMORY_PER_BYTE = 24;

    private static final int HEAP_PER_BYTE = 1000;
    private static final int HEAP = 1 << 20;

    /** The first byte gives the pieces of the others: one stream if it is 0, else pieces of so many bytes. */
    @FuzzTest
    @DictionaryEntries({
        "INT8",
        "INT64",
        "UINT64",
        "FP32",
        "FP64",
        "FP16",
        "BF16",
        "BOOL",
        "BYTES",
        "sequence_id",
        "sequence_start",
        "priority",
        "timeout",
        "classification",
        "shared_memory_region",
        "shared_memory_offset",
        "shared_memory_byte_size",
        "triton_enable_empty_final_response"
    })
    void readsOrRefuses(byte[] bytes) {
        if (bytes.length == 0) {
            return;
        }
        int piece = Byte.toUnsignedInt(bytes[0]);
        byte[] message = Arrays.copyOfRange(bytes, 1, bytes.length);
        List<Integer> cuts = piece == 0
                ? List.of()
                : IntStream.iterate(piece, at -> at < message.length, at -> at + piece)
                        .boxed()
                        .toList();
        ReaderProbe probe = new ReaderProbe(
                (long) MEMORY_PER_BYTE * message.length + HEAP, (long) HEAP_PER_BYTE * message.length + HEAP);
        probe.run(memory -> {
            try (InferMessage read = piece == 0
                    ? InferMessageReader.read(new ByteArrayInputStream(message), memory)
                    : InferMessageReader.read(TestMessages.cut(message, cuts))) {
                assemble(read, memory);
            }
        });
        InferMessageReaderProperties.assertAgreement(message, cuts);
    }

    private static void assemble(InferMessage message, TensorMemory memory) {
        ModelRef model = ModelRef.parse(message.names().model(), message.names().version());
        AssembledRequest assembled = new InferRequestAssembler(
                        memory, new FakeInferenceServer(memory).sharedMemory(), MAX_INPUT_BYTES)
                .assemble(
                        message, model, new CallContext(OptionalLong.empty(), ForwardedHeaders.NONE, Optional.empty()));
        assembled.request().release().run();
    }
}
