package dev.nereid.scheduler.batch;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.Quoted;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.NamedTensors;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Shows a waiting request to the batching strategy. Confined to the thread that forms the batch.
 *
 * <p>Inputs in memory of the client are copied, since the client may remove that memory, and so are inputs on a device,
 * since the strategy could not read them.
 */
final class CandidateView extends CheckedRequestView {
    private final ModelScope model;
    private final ScheduledRequest request;
    private final List<NamedTensor> copiedInputs = new ArrayList<>(1);
    private final List<TensorBuffer> copies = new ArrayList<>(0);
    private boolean closed;

    CandidateView(ModelScope model, ScheduledRequest request) {
        this.model = model;
        this.request = request;
    }

    @Override
    ScheduledRequest scheduled() {
        return request;
    }

    @Override
    CheckedRequest checked() {
        if (closed) {
            throw new IllegalStateException(
                    "request '" + Quoted.text(request.checked().id()) + "': its batch is formed (expected: not yet)");
        }
        return request.checked();
    }

    @Override
    public List<String> inputs() {
        return NamedTensors.names(checked().inputs());
    }

    @Override
    public Optional<Tensor> input(String name) {
        Tensor found = NamedTensors.find(checked().inputs(), name);
        return found == null ? Optional.empty() : Optional.of(readable(name, found));
    }

    private Tensor readable(String name, Tensor tensor) {
        boolean host = tensor.place().isHost();
        if (host && !ClientMemory.isClientMemory(tensor.data())) {
            return tensor;
        }
        Tensor earlier = NamedTensors.find(copiedInputs, name);
        if (earlier != null) {
            return earlier;
        }
        TensorBuffer copy = host ? model.memory().allocate(tensor.byteSize()) : onHost(name, tensor);
        copies.add(copy);
        if (host) {
            ClientMemory.copy(tensor.data(), copy.segment());
        }
        Tensor copied = Tensor.of(name, tensor.type(), tensor.shape(), copy.segment(), MemoryPlace.HOST);
        copiedInputs.add(new NamedTensor(name, copied));
        return copied;
    }

    private TensorBuffer onHost(String name, Tensor tensor) {
        DeviceMemory device = model.memory()
                .device(tensor.place())
                .orElseThrow(() -> new IllegalStateException(
                        "input '" + name + "': lies in " + tensor.place() + " (expected: memory of the host)"));
        return DeviceCopies.toHost(tensor, device, model.memory());
    }

    @Override
    public Optional<Sequence> sequence() {
        checked();
        return request.sequence(request.execution() + 1);
    }

    /** Frees the copies, and ends access to the request. */
    void close() {
        closed = true;
        copies.forEach(TensorBuffer::close);
    }
}
