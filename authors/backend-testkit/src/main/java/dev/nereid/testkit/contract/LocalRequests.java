package dev.nereid.testkit.contract;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.FakeSender;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** The requests of one execution, as the server completes them. Confined to the thread of the instance; frees them. */
final class LocalRequests implements AutoCloseable {
    private final ModelSettings settings;
    private final LeakCheckingMemory memory;
    private final List<MemoryPlace> places;
    private final Set<Integer> nulls;
    private final List<ContractExample> examples = new ArrayList<>();
    private final List<TensorBuffer> inputs = new ArrayList<>();
    private final List<FakeRequest> requests = new ArrayList<>();
    private final List<FakeSender> senders = new ArrayList<>();

    /**
     * Copies requests into memory that detects leaks and use after the end.
     *
     * @param sources the requests, at least one
     * @param nulls the places of null requests
     * @param memory allocates inputs and outputs
     */
    LocalRequests(ContractModel model, List<ContractExample> sources, Set<Integer> nulls, LeakCheckingMemory memory) {
        this.settings = model.settings();
        this.memory = memory;
        this.places = model.places();
        this.nulls = nulls;
        for (int i = 0; i < sources.size(); i++) {
            ContractExample example = model.completed(sources.get(i), isNull(i));
            examples.add(example);
            requests.add(request(example, isNull(i)));
        }
    }

    private FakeRequest request(ContractExample example, boolean isNull) {
        List<String> outputs = example.onlyOutput()
                .map(List::of)
                .orElseGet(
                        () -> settings.outputs().stream().map(TensorSpec::name).toList());
        FakeRequest request = new FakeRequest(LocalTensors.items(settings, example.inputs()), outputs);
        example.inputs().forEach((name, tensor) -> request.with(name, copy(tensor)));
        request.withParameters(example.parameters());
        example.sequence().ifPresent(request::withSequence);
        if (isNull) {
            request.asNullRequest();
        }
        FakeSender sender = settings.decoupled() ? new FakeSender(memory) : FakeSender.ofOneResponse(memory);
        senders.add(sender);
        request.with(sender);
        if (!settings.decoupled()) {
            request.withResponse(memory);
        }
        for (StateSpec state :
                settings.sequenceBatching().map(SequenceBatching::states).orElse(List.of())) {
            Optional<Tensor> present = request.input(state.inputName()).filter(_ -> state.sameBuffer());
            present.ifPresentOrElse(
                    value -> request.withState(state.outputName(), memory, value),
                    () -> request.withState(state.outputName(), memory));
        }
        if (settings.sequenceBatching().filter(SequenceBatching::iterative).isPresent()) {
            request.asIterative();
        }
        return request;
    }

    private Tensor copy(Tensor tensor) {
        TensorBuffer buffer = memory.allocate(tensor.byteSize());
        inputs.add(buffer);
        MemorySegment.copy(tensor.data(), 0, buffer.segment(), 0, tensor.byteSize());
        return Tensor.of(tensor.type(), tensor.shape(), buffer.segment());
    }

    FakeBatch batch() {
        FakeBatch batch = new FakeBatch(settings, memory, requests.toArray(FakeRequest[]::new));
        places.forEach(batch::withDevice);
        return batch;
    }

    List<FakeRequest> all() {
        return requests;
    }

    List<FakeSender> senders() {
        return senders;
    }

    ContractExample example(int place) {
        return examples.get(place);
    }

    boolean isNull(int place) {
        return nulls.contains(place);
    }

    /** Fails all requests, as the server does after an exception. */
    void fail(BackendException error) {
        requests.forEach(request -> request.fail(error));
    }

    /** Overwrites the inputs, except for memory of outputs. */
    void poison(FakeBatch batch) {
        InputMemory.poison(inputs, outputs(batch));
    }

    /** Returns the memory of all outputs that are not copied yet. */
    private List<MemorySegment> outputs(FakeBatch batch) {
        List<MemorySegment> all = new ArrayList<>();
        batch.outputs().values().forEach(tensor -> all.add(tensor.data()));
        requests.forEach(request -> request.outputs().values().forEach(tensor -> all.add(tensor.data())));
        senders.forEach(sender ->
                sender.responses().forEach(outputs -> outputs.values().forEach(tensor -> all.add(tensor.data()))));
        return all;
    }

    /** Fails if the execution changed an input. */
    void checkInputs(int place) {
        examples.get(place).inputs().forEach((name, expected) -> {
            MemorySegment now = requests.get(place).input(name).orElseThrow().data();
            if (expected.data().mismatch(now) >= 0) {
                throw new AssertionError("input '" + name + "' of request " + place
                        + ": changed by the execution (expected: inputs are read only)");
            }
        });
    }

    /** Frees inputs, and the responses of senders. */
    @Override
    public void close() {
        senders.forEach(FakeSender::close);
        inputs.forEach(TensorBuffer::close);
    }
}
