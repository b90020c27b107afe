package dev.nereid.plugin.agent;

import dev.nereid.api.InferenceException;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.plugin.AgentLease;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.agent.RepositoryAgent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The repository agents of one load of a model, from the load to the unload. Confined to the control tasks of the model,
 * one at a time; blocks as long as the agents do.
 *
 * <p>The order of the reference server: {@link #load} calls the agents in the order of the configuration and passes
 * each the directory of the one before. If one fails, no further agent is called, and each called agent, the failed one
 * included, receives the failure in reverse order. Otherwise {@link #loadComplete} or {@link #loadFail} follows, in
 * reverse order; then {@link #unload} in the order of the configuration, and {@link #unloadComplete} in reverse. The
 * last call closes the agents, releases their plugins, and deletes their directories.
 */
public final class AgentChain {
    private static final Logger LOG = LoggerFactory.getLogger(AgentChain.class);

    /** Acquires the provider of an agent by name. */
    @FunctionalInterface
    interface Source {
        AgentLease acquire(String name);
    }

    /** An agent in a configuration. Immutable. */
    record Configured(String name, Map<String, String> parameters) {
        Configured {
            parameters = Map.copyOf(parameters);
        }
    }

    private enum Phase {
        NEW,
        LOADING,
        LOADED,
        UNLOADING,
        ENDED
    }

    /** An agent that was created. */
    private record Running(RepositoryAgent agent, LoadContext context, AgentLease lease) {}

    private final String model;
    private final List<Configured> configured;
    private final Supplier<String> configJson;
    private final Source source;
    private final List<Running> running = new ArrayList<>();
    private Phase phase = Phase.NEW;

    /**
     * Creates the chain of a load that has not begun.
     *
     * @param configured its agents in the order of the configuration
     * @param source finds the agents
     */
    AgentChain(String model, List<Configured> configured, Supplier<String> configJson, Source source) {
        this.model = model;
        this.configured = List.copyOf(configured);
        this.configJson = configJson;
        this.source = source;
    }

    /**
     * Returns whether the model has no agents.
     *
     * @return whether all other methods do nothing
     */
    public boolean isEmpty() {
        return configured.isEmpty();
    }

    /**
     * Calls the agents before the model's files are read. Called once, first of all.
     *
     * @param directory the directory of the model in the repository
     * @throws InferenceException with the reason of the agent that failed, or if one is unknown; the chain has ended then
     */
    public Path load(Path directory) {
        step(Phase.NEW, Phase.LOADING);
        boolean loaded = false;
        try {
            Path current = directory;
            for (Configured agent : configured) {
                current = load(agent, current);
            }
            loaded = true;
            return current;
        } catch (BackendException e) {
            throw new InferenceException(e.code(), shown(String.valueOf(e.getMessage()), directory));
        } finally {
            if (!loaded) {
                loadFail();
            }
        }
    }

    /** Tells the agents that all versions were loaded. */
    public void loadComplete() {
        step(Phase.LOADING, Phase.LOADED);
        running.reversed().forEach(entry -> entry.agent().loadComplete());
    }

    /** Tells the agents that the load failed, and ends the chain. */
    public void loadFail() {
        step(Phase.LOADING, Phase.ENDED);
        end(RepositoryAgent::loadFail);
    }

    /** Tells the agents that the model is about to be unloaded. */
    public void unload() {
        step(Phase.LOADED, Phase.UNLOADING);
        running.forEach(entry -> entry.agent().unload());
    }

    /** Tells the agents that the model was unloaded, and ends the chain. */
    public void unloadComplete() {
        step(Phase.UNLOADING, Phase.ENDED);
        end(RepositoryAgent::unloadComplete);
    }

    private void step(Phase expected, Phase next) {
        if (phase != expected) {
            throw new IllegalStateException(
                    "agents of model '" + model + "': " + phase + " (expected: " + expected + ")");
        }
        phase = next;
    }

    /** Shows clients no places of files; the log has them. */
    private String shown(String text, Path directory) {
        Path root = directory.toAbsolutePath().getParent();
        String within = root == null ? text : ServerPaths.within(text, root);
        String shown = ServerPaths.namesAlone(within, configJson.get());
        if (!shown.equals(text)) {
            LOG.atWarn().addKeyValue("model", model).log("load failed, with whole paths (model '{}'): {}", model, text);
        }
        return shown;
    }

    private Path load(Configured agent, Path directory) {
        AgentLease lease = source.acquire(agent.name());
        LoadContext context = new LoadContext(agent.name(), model, agent.parameters(), configJson);
        boolean created = false;
        try {
            running.add(new Running(lease.provider().create(context), context, lease));
            created = true;
            Path result = running.getLast().agent().load(directory);
            if (!Files.isDirectory(result)) {
                throw new BackendException(
                        ErrorCode.INTERNAL, "the result is no directory (expected: a directory with the model)");
            }
            return result;
        } catch (BackendException e) {
            // The agent's text comes first, as on the reference server: scripts search for it.
            throw new BackendException(e.code(), e.getMessage() + " (repository agent '" + agent.name() + "')", e);
        } finally {
            if (!created) {
                context.delete();
                lease.close();
            }
        }
    }

    /** Calls the last hook of the agents and frees them, the last one first. */
    private void end(Consumer<RepositoryAgent> hook) {
        try {
            running.reversed().forEach(entry -> hook.accept(entry.agent()));
        } finally {
            for (Running entry : running.reversed()) {
                entry.agent().close();
                entry.context().delete();
                entry.lease().close();
            }
            running.clear();
        }
    }
}
