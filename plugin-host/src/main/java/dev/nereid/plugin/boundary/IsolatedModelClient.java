package dev.nereid.plugin.boundary;

import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
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
}
