package dev.nereid.server.client;

import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * Finds the responses in whose memory tensors lie, so that it stays while other models read it. Lock-free; safe for use by
 * any thread.
 */
final class OpenResponses {
    /** The outputs of open responses, by the addresses where they begin. */
    private final ConcurrentSkipListMap<Long, List<Output>> outputs = new ConcurrentSkipListMap<>();

    /** An output of a response. */
    private record Output(ReceivedResponse response, int index, long byteSize) {}

    /** Adds an output of a response. */
    void add(ReceivedResponse response, int index, Tensor tensor) {
        Output added = new Output(response, index, tensor.byteSize());
        outputs.merge(tensor.data().address(), List.of(added), (before, one) -> {
            List<Output> all = new ArrayList<>(before);
            all.addAll(one);
            return List.copyOf(all);
        });
    }

    /** Removes an output of a response. */
    void remove(ReceivedResponse response, int index, Tensor tensor) {
        outputs.computeIfPresent(tensor.data().address(), (_, before) -> {
            List<Output> left = before.stream()
                    .filter(one -> !(one.response().equals(response) && one.index() == index))
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
        long address = tensor.data().address();
        Map.Entry<Long, List<Output>> nearest = outputs.floorEntry(address);
        if (nearest == null || !tensor.place().isHost()) {
            return Optional.empty();
        }
        long end = address - nearest.getKey() + tensor.byteSize();
        return nearest.getValue().stream()
                .filter(one -> end <= one.byteSize())
                .flatMap(one -> one.response().tryLease(one.index()).stream())
                .findFirst();
    }
}
