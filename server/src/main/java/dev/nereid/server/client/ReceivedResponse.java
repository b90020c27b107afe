package dev.nereid.server.client;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterView;
import dev.nereid.scheduler.memory.StackReserve;
import dev.nereid.server.response.HeldResponse;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.List;
import java.util.Optional;

/**
 * A response as a backend or an embedding program sees it. Its outputs may be leased by any thread until it is closed.
 *
 * <p>Its receiver may forget it. Then its memory is released, but never while a tensor or a memory segment of it can be read:
 * they keep {@link #reachability} alive, as this object does.
 */
final class ReceivedResponse implements ModelResponse {
    private final InferResponse response;
    private final HeldResponse held;
    private final List<NamedTensor> outputs;

    /** The scope of the outputs. Runs the registered action when this object and all tensors are unreachable. */
    private final Arena reachability = Arena.ofAuto();

    /** Creates the view of a response. Its memory belongs to {@code held}. */
    @SuppressWarnings("restricted") // a segment without bytes
    ReceivedResponse(InferResponse response, HeldResponse held) {
        this.response = response;
        this.held = held;
        outputs = response.outputs();
        MemorySegment.NULL.reinterpret(0, reachability, _ -> held.forgotten());
    }

    @Override
    public String id() {
        return response.id();
    }

    @Override
    public long version() {
        return response.version();
    }

    @Override
    public boolean isFinal() {
        return response.isFinal();
    }

    @Override
    public List<String> outputs() {
        return outputs.stream().map(NamedTensor::name).toList();
    }

    @Override
    public Optional<Tensor> output(String name) {
        return outputs.stream()
                .filter(output -> output.name().equals(name))
                .map(output -> view(name, output.tensor()))
                .findFirst();
    }

    /** Returns a tensor that keeps the response reachable. */
    @SuppressWarnings("restricted") // of the same memory and size
    private Tensor view(String name, Tensor tensor) {
        MemorySegment data = tensor.data();
        if (!data.isNative()) { // an array, which is reachable itself
            return tensor.withName(name);
        }
        Tensor view =
                Tensor.of(name, tensor.type(), tensor.shape(), data.reinterpret(reachability, null), tensor.place());
        return tensor.fence().map(view::withFence).orElse(view);
    }

    @Override
    public Runnable lease(String name) {
        for (int i = 0; i < outputs.size(); i++) {
            if (outputs.get(i).name().equals(name)) {
                try {
                    return new OutputLease(
                            held.hold(i)
                                    .orElseThrow(() -> new IllegalStateException(
                                            "lease of output '" + name + "': the response is closed (expected: open)")),
                            reachability);
                } finally {
                    Reference.reachabilityFence(this); // so that it is not released before it is leased
                }
            }
        }
        throw new IllegalArgumentException("output '" + name + "': not in the response (it has: " + outputs() + ")");
    }

    @Override
    public Parameters parameters() {
        return ParameterView.of(response.parameters());
    }

    @Override
    public void close() {
        StackReserve.require();
        held.close();
    }

    /**
     * A lease on an output of a response as its plugin has it. Safe for use by any thread.
     *
     * <p>It may be forgotten. Then the output is released, but never while a tensor or a memory segment of the response can be
     * read. The response may be released before.
     */
    private static final class OutputLease implements Runnable {
        private final HeldResponse.HeldLease held;

        /** Runs the registered action when this object is not reachable. */
        private final Arena reachability = Arena.ofAuto();

        /**
         * Creates the plugin's lease.
         *
         * @param response the scope of the response's outputs
         */
        @SuppressWarnings("restricted") // segments without bytes
        OutputLease(HeldResponse.HeldLease held, Arena response) {
            this.held = held;
            MemorySegment.NULL.reinterpret(0, response, _ -> held.unreachable());
            MemorySegment.NULL.reinterpret(0, reachability, _ -> held.unreachable());
        }

        @Override
        public void run() {
            try {
                held.end();
            } finally {
                Reference.reachabilityFence(reachability);
                Reference.reachabilityFence(this);
            }
        }
    }
}
