package dev.nereid.testkit;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The inputs of a batch as one tensor each, as the server joins and derives them. Confined to the batch. */
final class JoinedInputs {
    private final ModelSettings settings;
    private final List<FakeRequest> requests;
    private final BatchMemory memory;
    private final Map<String, Tensor> derived = new LinkedHashMap<>();

    JoinedInputs(ModelSettings settings, List<FakeRequest> requests, BatchMemory memory) {
        this.settings = settings;
        this.requests = requests;
        this.memory = memory;
    }

    Set<String> names() {
        Set<String> inputs = new LinkedHashSet<>(requests.getFirst().inputs());
        for (BatchInput input : settings.batchInputs()) {
            if (requests.getFirst().inputs().contains(input.source())) {
                inputs.addAll(input.names());
            }
        }
        return inputs;
    }

    Tensor gather(String input) {
        for (BatchInput candidate : settings.batchInputs()) {
            if (candidate.names().contains(input)) {
                return derive(input, candidate);
            }
        }
        List<Tensor> parts = parts(input);
        if (is(input, TensorSpec.Trait.RAGGED)) {
            return flat(input, parts);
        }
        boolean isSingle = parts.size() == 1 || is(input, TensorSpec.Trait.SHAPE_TENSOR);
        return isSingle ? parts.getFirst() : join(input, parts);
    }

    /** Gathers an input in a place of the batch: a copy, unless it lies there. */
    Tensor gather(String input, MemoryPlace place) {
        Tensor gathered = gather(input);
        if (gathered.place().equals(place)) {
            return gathered;
        }
        TensorBuffer buffer = memory.allocate(gathered.byteSize());
        MemorySegment.copy(gathered.data(), 0, buffer.segment(), 0, gathered.byteSize());
        return Tensor.of(input, gathered.type(), gathered.shape(), buffer.segment(), place);
    }

    /** Returns an input of each request. */
    List<Tensor> parts(String input) {
        List<Tensor> parts = new ArrayList<>();
        for (FakeRequest request : requests) {
            parts.add(request.input(input)
                    .orElseThrow(() ->
                            new BackendException(ErrorCode.INVALID_ARGUMENT, "input '" + input + "': not given")));
        }
        return parts;
    }

    private boolean is(String input, TensorSpec.Trait trait) {
        return settings.input(input).filter(spec -> spec.is(trait)).isPresent();
    }

    private Tensor derive(String name, BatchInput input) {
        Tensor earlier = derived.get(name);
        if (earlier != null) {
            return earlier;
        }
        List<Shape> sources = parts(input.source()).stream().map(Tensor::shape).toList();
        boolean batched = settings.batches() && !is(input.source(), TensorSpec.Trait.SHAPE_TENSOR);
        Shape shape = DerivedNumbers.shape(input.kind(), sources, batched);
        TensorBuffer buffer = memory.allocate(shape.byteSize(input.type()));
        DerivedNumbers.write(DerivedNumbers.numbers(input.kind(), sources, batched), input.type(), buffer.segment());
        Tensor tensor = Tensor.of(name, input.type(), shape, buffer.segment(), MemoryPlace.HOST);
        derived.put(name, tensor);
        return tensor;
    }

    private Tensor flat(String input, List<Tensor> parts) {
        Tensor first = parts.getFirst();
        Shape shape = Shape.of(
                parts.stream().mapToLong(part -> part.shape().elementCount()).sum());
        return parts.size() == 1
                ? first.withShape(shape)
                : Tensor.of(input, first.type(), shape, joined(parts).segment(), MemoryPlace.HOST);
    }

    private Tensor join(String input, List<Tensor> parts) {
        Tensor first = parts.getFirst();
        long items = parts.stream().mapToLong(part -> part.shape().dim(0)).sum();
        return Tensor.of(
                input,
                first.type(),
                first.shape().withFirst(items),
                joined(parts).segment(),
                MemoryPlace.HOST);
    }

    private TensorBuffer joined(List<Tensor> parts) {
        TensorBuffer joined =
                memory.allocate(parts.stream().mapToLong(Tensor::byteSize).sum());
        long offset = 0;
        for (Tensor part : parts) {
            MemorySegment.copy(part.data(), 0, joined.segment(), offset, part.byteSize());
            offset += part.byteSize();
        }
        return joined;
    }
}
