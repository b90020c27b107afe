package dev.nereid.grpc.wire;

import dev.nereid.api.RequestedOutput;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorBuffer;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The tensors of a request that lie in shared memory. Immutable.
 *
 * @param outputs the names of the outputs that are written to shared memory, and so are not sent
 * @param leases the leases of shared memory regions, owned by the request
 */
public record SharedTensors(Set<String> outputs, List<SharedMemory.Lease> leases) {
    /** The tensors of a request that uses no shared memory. */
    public static final SharedTensors NONE = new SharedTensors(Set.of(), List.of());

    static SharedTensors of(List<RequestedOutput> outputs, List<TensorBuffer> leases) {
        if (leases.isEmpty()) {
            return NONE;
        }
        return new SharedTensors(
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
}
