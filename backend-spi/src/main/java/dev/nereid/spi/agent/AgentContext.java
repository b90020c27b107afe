package dev.nereid.spi.agent;

import java.nio.file.Path;
import java.util.Map;

/**
 * One load of a model, as its repository agent sees it. Safe for use by several threads. <em>Implemented by the
 * server.</em>
 *
 * @since 1.0
 */
public interface AgentContext {
    /**
     * Returns the name of the model.
     *
     * @return the name
     */
    String modelName();

    /**
     * Returns the parameters of the agent in the model's configuration.
     *
     * @return the parameters by name; immutable
     */
    Map<String, String> parameters();

    /**
     * Returns the model's configuration as it was before any agent was called.
     *
     * @return JSON in the format of the reference server; that of an empty configuration if there is no file
     */
    String configJson();

    /**
     * Returns a directory for files of this load, which is created by the first call. May block.
     *
     * @return a directory of the agent's own, empty at first; deleted by the server after the agent was closed
     * @throws java.io.UncheckedIOException if it cannot be created
     */
    Path workDirectory();

    /**
     * Returns the log of the agent.
     *
     * @return a logger named after agent and model
     */
    System.Logger logger();
}
