package dev.nereid.scheduler;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.Quoted;
import dev.nereid.api.TensorBuffer;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.QueuedRequest;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A request as the rule of its model sees it that forms batches. Confined to the thread that forms the batch.
 *
 * <p>Inputs in memory of the client are shown as copies: the client may take that memory away.
 */
final class QueuedView implements QueuedRequest {
    private final ModelScope model;
    private final ScheduledRequest request;
    private final List<NamedTensor> shown = new ArrayList<>(1);
    private final List<TensorBuffer> copies = new ArrayList<>(0);
    private boolean closed;

    QueuedView(ModelScope model, ScheduledRequest request) {
        this.model = model;
        this.request = request;
    }

    private CheckedCall call() {
        if (closed) {
            throw new IllegalStateException(
                    "request '" + Quoted.text(request.call().id()) + "': its batch is formed (expected: not yet)");
        }
        return request.call();
    }

    @Override
    public String id() {
        return call().id();
    }

    @Override
    public int batchSize() {
        return call().batchSize();
    }

    @Override
    public List<String> inputs() {
        return NamedTensors.names(call().inputs());
    }

    @Override
    public Optional<Tensor> input(String name) {
        Tensor found = NamedTensors.find(call().inputs(), name);
        return found == null ? Optional.empty() : Optional.of(readable(name, found));
    }

    private Tensor readable(String name, Tensor tensor) {
        if (!ClientMemory.isClients(tensor.data())) {
            return tensor;
        }
        Tensor earlier = NamedTensors.find(shown, name);
        if (earlier != null) {
            return earlier;
        }
        TensorBuffer copy = model.memory().allocate(tensor.byteSize());
        copies.add(copy);
        ClientMemory.copy(tensor.data(), copy.segment());
        Tensor copied = Tensor.of(tensor.type(), tensor.shape(), copy.segment());
        shown.add(new NamedTensor(name, copied));
        return copied;
    }

    @Override
    public List<String> requestedOutputs() {
        return call().outputs();
    }

    @Override
    public Map<String, ParameterValue> parameters() {
        return call().parameters();
    }

    @Override
    public long priority() {
        return call().options().priority();
    }

    /** Ends the use of the request. */
    void close() {
        closed = true;
        copies.forEach(TensorBuffer::close);
    }
}
