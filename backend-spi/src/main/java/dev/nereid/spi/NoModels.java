package dev.nereid.spi;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** The client of a context without other models. Its requests fail. Immutable. */
final class NoModels implements ModelClient {
    static final NoModels INSTANCE = new NoModels();

    private NoModels() {}

    private static BackendException unavailable() {
        return new BackendException(
                ErrorCode.UNAVAILABLE,
                "other models: not available here (expected: a call in load or later, not in complete, and a server or a"
                        + " test that has other models)");
    }

    @Override
    public ModelRequest request(String model) {
        throw unavailable();
    }

    @Override
    public boolean isReady(String model) {
        return false;
    }

    @Override
    public boolean isDecoupled(String model, long version) {
        throw unavailable();
    }

    @Override
    public CompletionStage<Void> load(String model) {
        return CompletableFuture.failedStage(unavailable());
    }

    @Override
    public CompletionStage<Void> load(String model, String config, Map<String, ByteBuffer> files) {
        return load(model);
    }

    @Override
    public CompletionStage<Void> unload(String model) {
        return CompletableFuture.failedStage(unavailable());
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return unload(model);
    }
}
