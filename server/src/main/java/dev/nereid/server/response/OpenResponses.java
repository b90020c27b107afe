package dev.nereid.server.response;

import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Finds the responses that hold the memory of tensors. So the memory stays while other models read it. Lock-free; safe
 * for use by any thread.
 */
final class OpenResponses {
    /** The outputs of open responses, by the addresses where they begin. */
    private final ConcurrentSkipListMap<Long, List<Output>> outputs = new ConcurrentSkipListMap<>();

    /** The bytes of the largest output so far: one that begins further below a tensor does not contain it. */
    private final AtomicLong largest = new AtomicLong();

    /** An output of a response. */
    private record Output(HeldResponse response, int index, long byteSize) {}

    void add(HeldResponse response, int index, Tensor tensor) {
        Output added = new Output(response, index, tensor.byteSize());
        if (largest.get() < added.byteSize()) {
            largest.accumulateAndGet(added.byteSize(), Math::max);
        }
        outputs.merge(tensor.data().address(), List.of(added), (before, more) -> {
            List<Output> all = new ArrayList<>(before);
            all.addAll(more);
            return List.copyOf(all);
        });
    }

    void remove(HeldResponse response, int index, Tensor tensor) {
        outputs.computeIfPresent(tensor.data().address(), (_, before) -> {
            List<Output> left = before.stream()
                    .filter(output -> !(output.response().equals(response) && output.index() == index))
                    .toList();
            return left.isEmpty() ? null : left;
        });
    }

    /**
     * Keeps the memory of a tensor that lies in an output of an open response.
     *
     * @return ends that; empty if it lies in none
     */
    Optional<Runnable> keep(Tensor tensor) {
        if (!tensor.place().isHost()) {
            return Optional.empty();
        }
        long address = tensor.data().address();
        Map.Entry<Long, List<Output>> lower = outputs.floorEntry(address);
        // Outputs may lie in others, such as parts of a tensor that were passed on.
        while (lower != null && address - lower.getKey() + tensor.byteSize() <= largest.get()) {
            long end = address - lower.getKey() + tensor.byteSize();
            Optional<Runnable> lease = lower.getValue().stream()
                    .filter(output -> end <= output.byteSize())
                    .flatMap(output -> output.response().tryLease(output.index()).stream())
                    .findFirst();
            if (lease.isPresent()) {
                return lease;
            }
            lower = outputs.lowerEntry(lower.getKey());
        }
        return Optional.empty();
    }
}
