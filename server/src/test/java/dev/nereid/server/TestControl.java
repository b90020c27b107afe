package dev.nereid.server;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;

/** Loads and unloads models as clients do, and waits for the end. Static functions only. */
final class TestControl {
    private TestControl() {}

    static void load(NereidServer server, String model) throws Exception {
        await(server.control().load(new ModelControl.Load(model, Optional.empty(), Map.of())));
    }

    static void force(NereidServer server, String model) throws Exception {
        await(server.control().load(new ModelControl.Load(model, Optional.empty(), Map.of()).forced()));
    }

    static void load(NereidServer server, String model, String config, Map<String, ByteBuffer> files) throws Exception {
        await(server.control().load(new ModelControl.Load(model, Optional.of(config), files)));
    }

    static void unload(NereidServer server, String model) throws Exception {
        await(server.control().unload(model, false));
    }

    static void unloadWithNeeded(NereidServer server, String model) throws Exception {
        await(server.control().unload(model, true));
    }

    private static void await(CompletionStage<Void> stage) throws Exception {
        try {
            stage.toCompletableFuture().get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof InferenceException failure ? failure : e;
        }
    }

    /** Lists name, version, state and reason of all models. */
    static List<String> index(NereidServer server) throws Exception {
        return server.control().index().toCompletableFuture().get().stream()
                .map(TestControl::describe)
                .toList();
    }

    private static String describe(ModelStatus status) {
        String version = status.version().isPresent() ? " " + status.version().getAsLong() : "";
        return (status.name() + version + " " + status.state() + " " + status.reason()).strip();
    }

    static void awaitIndex(NereidServer server, String... lines) throws Exception {
        while (!index(server).equals(List.of(lines))) {
            Thread.onSpinWait(); // until the last generation is closed, or the poller has scanned
        }
    }
}
