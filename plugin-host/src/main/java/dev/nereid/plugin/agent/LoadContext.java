package dev.nereid.plugin.agent;

import dev.nereid.plugin.PluginLogger;
import dev.nereid.spi.agent.AgentContext;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Services of the server for one agent of one load. Safe for use by any thread; its lock guards its directory. */
final class LoadContext implements AgentContext {
    private static final Logger LOG = LoggerFactory.getLogger(LoadContext.class);

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
