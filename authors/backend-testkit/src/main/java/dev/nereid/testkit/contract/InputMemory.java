package dev.nereid.testkit.contract;

import dev.nereid.api.memory.TensorBuffer;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** The memory of inputs after their execution. Static functions only. */
final class InputMemory {
    private static final byte POISON = (byte) 0xDB;

    private InputMemory() {}

    /** Overwrites inputs, except for memory of outputs. */
    static void poison(List<TensorBuffer> inputs, List<MemorySegment> outputs) {
        for (TensorBuffer input : inputs) {
            boolean isOutput = outputs.stream()
                    .anyMatch(
                            output -> output.asOverlappingSlice(input.segment()).isPresent());
            if (!isOutput) {
                input.segment().fill(POISON);
            }
        }
    }
}
