package dev.nereid.server.client;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.TensorLease;
import dev.nereid.api.parameter.ParameterView;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/** A response of another model, as a backend sees it. Its outputs may be leased by any thread until it is closed. */
final class ReceivedResponse implements ModelResponse {
    private final InferResponse response;
    private final List<NamedTensor> outputs;
    private final OpenResponses open;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private boolean closed;

    /** Creates the view of a response, which it owns. */
    ReceivedResponse(InferResponse response, OpenResponses open) {
        this.response = response;
        this.open = open;
        outputs = response.outputs();
        for (int i = 0; i < outputs.size(); i++) {
            if (isKnown(i)) {
                open.add(this, i, outputs.get(i).tensor());
            }
        }
    }

    private boolean isKnown(int output) {
        Tensor tensor = outputs.get(output).tensor();
        return tensor.place().isHost() && tensor.byteSize() > 0;
    }

    @Override
    public long version() {
        return response.version();
    }

    @Override
    public List<String> outputs() {
        return outputs.stream().map(NamedTensor::name).toList();
    }

    @Override
    public Optional<Tensor> output(String name) {
        return outputs.stream()
                .filter(output -> output.name().equals(name))
                .map(output -> output.tensor().withName(name))
                .findFirst();
    }

    @Override
    public Runnable lease(String name) {
        for (int i = 0; i < outputs.size(); i++) {
            if (outputs.get(i).name().equals(name)) {
                return tryLease(i)
                        .orElseThrow(() -> new IllegalStateException(
                                "lease of output '" + name + "': the response is closed (expected: open)"));
            }
        }
        throw new IllegalArgumentException("output '" + name + "': not in the response (it has: " + outputs() + ")");
    }

    /** Leases an output; empty if the response is closed. */
    Optional<Runnable> tryLease(int output) {
        lock.lock();
        try {
            if (closed) {
                return Optional.empty();
            }
            TensorLease lease = response.lease(output);
            return Optional.of(lease::close);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public Parameters parameters() {
        return ParameterView.of(response.parameters());
    }

    @Override
    public void close() {
        if (!markClosed()) {
            return;
        }
        for (int i = 0; i < outputs.size(); i++) {
            if (isKnown(i)) {
                open.remove(this, i, outputs.get(i).tensor());
            }
        }
        response.close();
    }

    /** Lets no output be leased any more; returns whether this is the first call. */
    private boolean markClosed() {
        lock.lock();
        try {
            boolean first = !closed;
            closed = true;
            return first;
        } finally {
            lock.unlock();
        }
    }
}
