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
 * @param inputs the memory of inputs in shared memory, valid as long as the request's memory
 * @param outputs the names of the outputs that are written to shared memory, and so are not sent
 * @param leases the leases of shared memory regions, owned by the request
 */
public record SharedTensors(List<MemorySegment> inputs, Set<String> outputs, List<SharedMemory.Lease> leases) {
    /** The tensors of a request that uses no shared memory. */
    public static final SharedTensors NONE = new SharedTensors(List.of(), Set.of(), List.of());

    /**
     * Returns the tensors of a request.
     *
     * @param inputs the leases of inputs
     * @param outputs all requested outputs
     * @param leases the leases of inputs and outputs
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

    /** Releases the registrations of the regions, before the terminal response is sent. May be called on any thread. */
    public void releaseRegistrations() {
        if (!leases.isEmpty()) {
            leases.forEach(SharedMemory.Lease::releaseRegistration);
        }
    }

    /** Says whether data lies in an input in shared memory. The client can truncate that memory at any time. */
    boolean holds(MemorySegment data) {
        for (MemorySegment input : inputs) {
            if (input.asOverlappingSlice(data).isPresent()) {
                return true;
            }
        }
        return false;
    }
}
