package dev.nereid.server.client;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.function.BiPredicate;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/** The client of one model version, or of the embedding program. Immutable. */
final class ServerModelClient implements ModelClient {
    private final ModelClients clients;
    private final ResponseHolder holder;
    private final Optional<ModelRef> caller;
    private final BooleanSupplier loading;

    /**
     * Creates the client of a model version, or of the embedding program.
     *
     * @param holder the version or the program, and the responses that it holds
     * @param loading whether the load of the version is in progress
     */
    ServerModelClient(ModelClients clients, ResponseHolder holder, BooleanSupplier loading) {
        this.loading = loading;
        this.clients = clients;
        this.holder = holder;
        caller = holder.caller();
    }

    @Override
    public ModelRequest request(String model) {
        caller.ifPresent(clients::sends);
        return new OutgoingRequest(clients, holder, clients.resolve(caller, model));
    }

    @Override
    public boolean isReady(String model) {
        try {
            return clients.server().models().isReady(ModelRef.latest(clients.resolve(caller, model)));
        } catch (InferenceException e) { // such as a model that the server does not have
            return false;
        }
    }

    @Override
    public boolean isReady(String model, long version) {
        return read(model, version, ModelCatalog::isReady);
    }

    @Override
    public boolean isDecoupled(String model, long version) {
        return read(
                model,
                version,
                (models, found) ->
                        models.config(found).getModelTransactionPolicy().getDecoupled());
    }

    private boolean read(String model, long version, BiPredicate<ModelCatalog, ModelRef> read) {
        if (version < ModelRef.LATEST) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "version of model '" + model + "': " + version + " (expected: >= -1)");
        }
        try {
            return read.test(clients.server().models(), new ModelRef(clients.resolve(caller, model), version));
        } catch (InferenceException e) {
            throw translate(e);
        }
    }

    @Override
    public CompletionStage<Void> load(String model) {
        return load(model, "", Map.of());
    }

    @Override
    public CompletionStage<Void> load(String model, String config, Map<String, ByteBuffer> files) {
        Map<String, ByteBuffer> read = new LinkedHashMap<>();
        files.forEach((path, content) -> read.put(path, content.asReadOnlyBuffer()));
        Optional<String> json = config.isEmpty() ? Optional.empty() : Optional.of(config);
        return control("load", model, control -> control.load(new ModelControl.Load(model, json, read)));
    }

    @Override
    public CompletionStage<Void> unload(String model) {
        return unload(model, false);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return control("unload", model, control -> control.unload(model, dependents));
    }

    private CompletionStage<Void> control(
            String what, String model, Function<ModelControl, CompletionStage<Void>> task) {
        CompletableFuture<Void> outcome = new CompletableFuture<>();
        Runnable end = () -> {};
        try {
            end = clients.beginLoad(what, caller, loading, model);
            Runnable ended = end;
            task.apply(clients.server().control())
                    .whenComplete((_, _) -> ended.run()) // also if no action can be run
                    .whenCompleteAsync(
                            (_, failure) -> {
                                if (failure == null) {
                                    outcome.complete(null);
                                } else {
                                    outcome.completeExceptionally(translated(failure));
                                }
                            },
                            holder.actions());
        } catch (InferenceException e) {
            end.run();
            outcome.completeExceptionally(translate(e));
        }
        return outcome;
    }

    private static Throwable translated(Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        return cause instanceof InferenceException known ? translate(known) : cause;
    }

    static BackendException translate(InferenceException error) {
        return new BackendException(error.code(), error.publicMessage(), error);
    }
}
