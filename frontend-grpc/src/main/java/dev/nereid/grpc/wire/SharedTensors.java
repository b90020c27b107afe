package dev.nereid.grpc.wire;

import dev.nereid.api.RequestedOutput;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorBuffer;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The tensors of a request that lie in shared memory. Immutable.
 *
 * @param inputs the parts of shared memory that inputs lie in, valid as long as the call's memory is
 * @param outputs the names of the outputs that are written to shared memory, and so do not travel
 * @param leases the parts of shared memory that the call uses, owned by the call
 */
public record SharedTensors(List<MemorySegment> inputs, Set<String> outputs, List<SharedMemory.Lease> leases) {
    /** For calls that have no tensors in shared memory. */
    public static final SharedTensors NONE = new SharedTensors(List.of(), Set.of(), List.of());

    /**
     * Returns the tensors of a call.
     *
     * @param inputs the parts of shared memory that inputs lie in
     * @param outputs all outputs that the call wants
     * @param leases the parts of shared memory of both
     */
    static SharedTensors of(List<TensorBuffer> inputs, List<RequestedOutput> outputs, List<TensorBuffer> leases) {
        if (leases.isEmpty()) {
            return NONE;
        }
        return new SharedTensors(
                inputs.stream().map(TensorBuffer::segment).toList(),
                outputs.stream()
                        .filter(output -> output.target().isPresent())
                        .map(RequestedOutput::name)
                        .collect(Collectors.toSet()),
                leases.stream().map(SharedMemory.Lease.class::cast).toList());
    }

    /** Takes note that the client is about to get its last response. May be called on any thread. */
    public void answered() {
        if (!leases.isEmpty()) {
            leases.forEach(SharedMemory.Lease::releaseRegistration);
        }
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
