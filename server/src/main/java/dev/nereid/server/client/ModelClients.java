package dev.nereid.server.client;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelRef;
import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.repository.ModelKey;
import dev.nereid.scheduler.client.RunningExecution;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadFactory;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** Creates the clients by which models, and the program that embeds the server, send requests. Safe for use by any thread. */
public final class ModelClients {
    private final ClientModels models;
    private final ModelDependencies dependencies;
    private final LoadCycles requested = new LoadCycles();

    /** The model versions that have sent requests. */
    private final Set<ModelRef> callers = ConcurrentHashMap.newKeySet();

    private volatile @Nullable InferenceServer server;

    /** Creates clients that refuse requests until {@link #serve}. */
    public ModelClients(ClientModels models, ModelDependencies dependencies) {
        this.models = models;
        this.dependencies = dependencies;
    }

    /** Passes requests to a server from now on. */
    public void serve(InferenceServer serving) {
        server = serving;
    }

    /** Creates the client of a model version. Called by the thread that loads the version. */
    public ModelClient of(ResponseHolder holder) {
        return new ServerModelClient(
                this,
                holder,
                holder.caller()
                        .map(caller -> models.currentStep(ModelKey.name(caller.name())))
                        .orElse(() -> false));
    }

    /**
     * Creates the client of the program that embeds the server. Its actions on responses run on separate threads, since
     * they may block for ever. They have the context class loader of the calling thread, not that of the plugin that
     * sends the response.
     *
     * @param holders the holders of responses, which the program joins
     */
    public ModelClient ofProgram(ResponseHolders holders) {
        ThreadFactory threads = Thread.ofVirtual()
                .name("program")
                .inheritInheritableThreadLocals(false)
                .factory();
        PluginBoundary boundary =
                new PluginBoundary("program", Thread.currentThread().getContextClassLoader());
        return of(holders.addProgram(
                boundary.executor(action -> threads.newThread(action).start())));
    }

    /** Returns a view of the model versions that have sent requests. Requests in progress may send more. */
    public Set<ModelRef> callers() {
        return callers;
    }

    void sends(ModelRef caller) {
        if (!callers.contains(caller)) {
            callers.add(caller);
        }
    }

    /**
     * Returns the server.
     *
     * @throws InferenceException {@link ErrorCode#UNAVAILABLE} if it has not started yet
     */
    InferenceServer server() {
        InferenceServer serving = server;
        if (serving == null) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
        }
        return serving;
    }

    /**
     * Returns the key of a named model: the model in the caller's namespace if there is one, else the name as given.
     */
    String resolve(Optional<ModelRef> caller, String name) {
        String namespace = caller.map(model -> ModelKey.namespace(model.name())).orElse("");
        String own = ModelKey.of(namespace, name);
        return !namespace.isEmpty() && models.isKnown(own) ? own : name;
    }

    /**
     * Begins the load or unload of a model at the request of another one, unless it would wait for the load of that one,
     * which is in progress.
     *
     * @param what {@code "load"} or {@code "unload"}
     * @param asking the model that asks for it; empty for the program, since nothing waits for its loads
     * @param loading whether the caller's load is in progress
     * @return to be run when it has ended
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it would
     */
    Runnable beginLoad(String what, Optional<ModelRef> asking, BooleanSupplier loading, String name) {
        if (asking.isEmpty()) {
            return () -> {};
        }
        ModelRef caller = asking.get();
        String own = ModelKey.name(caller.name());
        BooleanSupplier goesOn = loading.getAsBoolean() ? loading : models.currentStep(own); // such as a new instance
        if (!goesOn.getAsBoolean()) {
            return () -> {};
        }
        String other = models.key(resolve(asking, name));
        if (dependencies.dependents(caller.name()).contains(other)
                || dependencies.dependents(other).contains(caller.name())) {
            throw waits(what, other, own);
        }
        return requested.begin(caller.name(), goesOn, other).orElseThrow(() -> waits(what, other, own));
    }

    private static InferenceException waits(String what, String other, String own) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                what + " of model '" + ModelKey.name(other) + "' would wait for the load of model '" + own
                        + "', which asks for it (expected: afterwards)");
    }

    Optional<RunningExecution> currentExecution() {
        return models.executionOn(Thread.currentThread());
    }
}
