package dev.nereid.plugin.boundary;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CompletionStage;

/** The client of a model of a plugin, through the plugin boundary. Immutable; safe for use by any thread. */
public record IsolatedModelClient(ModelClient client, PluginBoundary boundary) implements ModelClient {
    @Override
    public ModelRequest request(String model) {
        return new IsolatedModelRequest(client.request(model), boundary);
    }

    @Override
    public boolean isReady(String model) {
        return client.isReady(model);
    }

    @Override
    public boolean isReady(String model, long version) {
        return client.isReady(model, version);
    }

    @Override
    public boolean isDecoupled(String model, long version) {
        return client.isDecoupled(model, version);
    }

    @Override
    public CompletionStage<Void> load(String model) {
        return boundary.stage(client.load(model), _ -> {});
    }

    @Override
    public CompletionStage<Void> load(String model, String config, Map<String, ByteBuffer> files) {
        return boundary.stage(client.load(model, config, files), _ -> {});
    }

    @Override
    public CompletionStage<Void> unload(String model) {
        return boundary.stage(client.unload(model), _ -> {});
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return boundary.stage(client.unload(model, dependents), _ -> {});
    }

    /**
     * A request of a plugin to another model, with responses through the plugin boundary. Confined like the wrapped
     * request.
     */
    private static final class IsolatedModelRequest implements ModelRequest {
        private final ModelRequest request;
        private final PluginBoundary boundary;

        IsolatedModelRequest(ModelRequest request, PluginBoundary boundary) {
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

    /**
     * The observer of a plugin, through the plugin boundary. Its exceptions pass: the server logs them, and cancels the
     * request. Called by any thread, one call at a time.
     */
    public static final class IsolatedResponseObserver implements ModelResponseObserver {
        private final ModelResponseObserver observer;
        private final PluginBoundary boundary;

        public IsolatedResponseObserver(ModelResponseObserver observer, PluginBoundary boundary) {
            this.observer = observer;
            this.boundary = boundary;
        }

        @Override
        public void onResponse(ModelResponse response) {
            run("onResponse", () -> observer.onResponse(response));
        }

        @Override
        public void onFailedResponse(BackendException error) {
            run("onFailedResponse", () -> observer.onFailedResponse(error));
        }

        @Override
        public void onCompleted() {
            run("onCompleted", observer::onCompleted);
        }

        @Override
        public void onError(BackendException error) {
            run("onError", () -> observer.onError(error));
        }

        @Override
        public void onRefused(BackendException error) {
            run("onRefused", () -> observer.onRefused(error));
        }

        @Override
        public boolean isReady() {
            return boundary.call("ModelResponseObserver.isReady", observer::isReady);
        }

        @Override
        public void onReady(Runnable action) {
            run("onReady", () -> observer.onReady(action));
        }

        private void run(String method, Runnable call) {
            boundary.call("ModelResponseObserver." + method, () -> {
                call.run();
                return true;
            });
        }
    }
}
