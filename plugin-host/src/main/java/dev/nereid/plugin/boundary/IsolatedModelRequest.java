package dev.nereid.plugin.boundary;

import dev.nereid.spi.Batch;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.util.concurrent.CompletionStage;

/**
 * A request of a plugin to another model, with responses through the plugin boundary. Confined like the wrapped
 * request.
 */
public final class IsolatedModelRequest implements ModelRequest {
    private final ModelRequest request;
    private final PluginBoundary boundary;

    public IsolatedModelRequest(ModelRequest request, PluginBoundary boundary) {
        this.request = request;
        this.boundary = boundary;
    }

    @Override
    public ModelRequest onBehalfOf(InferenceRequest cause) {
        request.onBehalfOf(cause);
        return this;
    }

    @Override
    public ModelRequest onBehalfOf(Batch cause) {
        request.onBehalfOf(cause);
        return this;
    }

    @Override
    public ModelRequest id(String id) {
        request.id(id);
        return this;
    }

    @Override
    public ModelRequest priority(long priority) {
        request.priority(priority);
        return this;
    }

    @Override
    public ModelRequest timeoutMicros(long micros) {
        request.timeoutMicros(micros);
        return this;
    }

    @Override
    public ModelRequest version(long version) {
        request.version(version);
        return this;
    }

    @Override
    public ModelRequest input(String name, Tensor tensor) {
        request.input(name, tensor);
        return this;
    }

    @Override
    public ModelRequest input(String name, Tensor tensor, Runnable release) {
        request.input(
                name,
                tensor,
                () -> boundary.call("release of ModelRequest.input", () -> {
                    release.run();
                    return true;
                }));
        return this;
    }

    @Override
    public ModelRequest output(String name) {
        request.output(name);
        return this;
    }

    @Override
    public ModelRequest output(String name, MemoryPlace place) {
        request.output(name, place);
        return this;
    }

    @Override
    public ModelRequest parameter(String name, String value) {
        request.parameter(name, value);
        return this;
    }

    @Override
    public ModelRequest parameter(String name, long value) {
        request.parameter(name, value);
        return this;
    }

    @Override
    public ModelRequest parameter(String name, double value) {
        request.parameter(name, value);
        return this;
    }

    @Override
    public ModelRequest parameter(String name, boolean value) {
        request.parameter(name, value);
        return this;
    }

    @Override
    public ModelRequest sequence(Sequence sequence) {
        request.sequence(sequence);
        return this;
    }

    @Override
    public CompletionStage<ModelResponse> send() {
        return boundary.stage(request.send(), ModelResponse::close);
    }

    @Override
    public ModelResponse sendAndWait() throws InterruptedException {
        return request.sendAndWait();
    }

    @Override
    public void send(ModelResponseObserver observer) {
        request.send(new IsolatedResponseObserver(observer, boundary));
    }

    @Override
    public void cancel() {
        request.cancel();
    }
}
