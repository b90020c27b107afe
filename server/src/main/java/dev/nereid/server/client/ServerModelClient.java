package dev.nereid.server.client;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;

/** The client of one model version. Immutable. */
final class ServerModelClient implements ModelClient {
    private final ModelClients clients;
    private final ResponseHolder holder;
    private final ModelRef caller;

    /**
     * Creates the client of a model version.
     *
     * @param holder the version, and the responses that it holds
     */
    ServerModelClient(ModelClients clients, ResponseHolder holder) {
        this.clients = clients;
        this.holder = holder;
        caller = holder.caller();
    }

    @Override
    public ModelRequest request(String model) {
        clients.sends(caller);
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
    public CompletionStage<Void> load(String model) {
        return control(() -> {
            clients.checkLoads("load", caller, model);
            return clients.server().control().load(new ModelControl.Load(model, Optional.empty(), Map.of()));
        });
    }

    @Override
    public CompletionStage<Void> unload(String model) {
        return control(() -> {
            clients.checkLoads("unload", caller, model);
            return clients.server().control().unload(model, false);
        });
    }

    private CompletionStage<Void> control(Supplier<CompletionStage<Void>> task) {
        CompletableFuture<Void> outcome = new CompletableFuture<>();
        try {
            task.get()
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
            outcome.completeExceptionally(translate(e));
        }
        return outcome;
    }

    private static Throwable translated(Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        return cause instanceof InferenceException known ? translate(known) : cause;
    }

    /** Returns an error of the server as backends know it. */
    static BackendException translate(InferenceException error) {
        return new BackendException(error.code(), error.publicMessage(), error);
    }
}
