package dev.nereid.plugin.agent;

import dev.nereid.api.InferenceException;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.plugin.AgentLease;
import dev.nereid.plugin.PluginLogger;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.agent.AgentContext;
import dev.nereid.spi.agent.RepositoryAgent;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
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

    /** Returns whether the model has no agents, so that all other methods do nothing. */
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

    /** Services of the server for one agent of one load. Safe for use by any thread; its lock guards its directory. */
    static final class LoadContext implements AgentContext {
        private final String agent;
        private final String model;
        private final Map<String, String> parameters;
        private final Supplier<String> configJson;
        private final System.Logger logger;
        private final ReentrantLock lock = new ReentrantLock();
        private Optional<Path> directory = Optional.empty();

        LoadContext(String agent, String model, Map<String, String> parameters, Supplier<String> configJson) {
            this.agent = agent;
            this.model = model;
            this.parameters = parameters;
            this.configJson = configJson;
            logger = PluginLogger.ofAgent(agent, model);
        }

        @Override
        public String modelName() {
            return model;
        }

        @Override
        public Map<String, String> parameters() {
            return parameters;
        }

        @Override
        public String configJson() {
            return configJson.get();
        }

        /** Creates a directory that only the server's user can access. */
        @Override
        public Path workDirectory() {
            lock.lock();
            try {
                if (directory.isEmpty()) {
                    directory = Optional.of(Files.createTempDirectory("nereid-agent-"));
                }
                return directory.get();
            } catch (IOException e) {
                throw new UncheckedIOException(
                        "directory for repository agent '" + agent + "': cannot be created: " + e.getMessage(), e);
            } finally {
                lock.unlock();
            }
        }

        @Override
        public System.Logger logger() {
            return logger;
        }

        /** Deletes the directory and its entries. The targets of links stay. */
        void delete() {
            lock.lock();
            try {
                if (directory.isPresent()) {
                    for (Path entry : entries(directory.get())) {
                        Files.deleteIfExists(entry);
                    }
                    directory = Optional.empty();
                }
            } catch (IOException | UncheckedIOException e) {
                LOG.atWarn()
                        .addKeyValue("agent", agent)
                        .addKeyValue("model", model)
                        .addKeyValue("directory", directory)
                        .setCause(e)
                        .log(
                                "directory of repository agent could not be deleted (agent '{}', model '{}', {})",
                                agent,
                                model,
                                directory);
            } finally {
                lock.unlock();
            }
        }

        private static List<Path> entries(Path directory) throws IOException {
            try (Stream<Path> walk = Files.walk(directory)) {
                return walk.sorted(Comparator.reverseOrder()).toList();
            }
        }
    }
}
