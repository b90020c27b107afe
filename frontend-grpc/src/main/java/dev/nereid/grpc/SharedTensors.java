package dev.nereid.grpc;

import dev.nereid.api.RequestedOutput;
import dev.nereid.api.TensorBuffer;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Which tensors of a call lie in memory that the client shares with the server. Immutable.
 *
 * @param inputs the parts of shared memory that inputs lie in, valid as long as the call's memory is
 * @param outputs the names of the outputs that are written to shared memory, and so do not travel
 */
record SharedTensors(List<MemorySegment> inputs, Set<String> outputs) {
    /** For calls that have no tensors in shared memory. */
    static final SharedTensors NONE = new SharedTensors(List.of(), Set.of());

    /**
     * Returns the tensors of a call.
     *
     * @param inputs the parts of shared memory that inputs lie in
     * @param outputs all outputs that the call wants
     */
    static SharedTensors of(List<TensorBuffer> inputs, List<RequestedOutput> outputs) {
        boolean hasOutputs = false;
        for (RequestedOutput output : outputs) {
            hasOutputs |= output.target().isPresent();
        }
        if (inputs.isEmpty() && !hasOutputs) {
            return NONE;
        }
        return new SharedTensors(
                inputs.stream().map(TensorBuffer::segment).toList(),
                outputs.stream()
                        .filter(output -> output.target().isPresent())
                        .map(RequestedOutput::name)
                        .collect(Collectors.toSet()));
    }

    /** Says whether a tensor lies in an input that the client can take away at any time. */
    boolean holds(MemorySegment data) {
        for (MemorySegment input : inputs) {
            if (input.asOverlappingSlice(data).isPresent()) {
                return true;
            }
        }
        return false;
    }
}
