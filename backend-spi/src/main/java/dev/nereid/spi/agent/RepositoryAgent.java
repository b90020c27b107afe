package dev.nereid.spi.agent;

import dev.nereid.spi.BackendException;
import java.nio.file.Path;

/**
 * The repository agent of one load of a model. <em>Implemented by agents.</em>
 *
 * <p>The server calls {@link #load}, then {@link #loadComplete} or {@link #loadFail}. A model that was loaded is
 * unloaded at some time: {@link #unload}, {@link #unloadComplete}. Last of all comes {@link #close}. A reload of a
 * model is a load with a separate agent, before the unload of the former one.
 *
 * <p>Where a configuration names several agents, {@code load} and {@code unload} are called in its order, and the other
 * methods in reverse order. All calls come from control threads, one at a time, and may block; an exception of a method
 * other than {@code load} is logged, and changes nothing.
 *
 * @since 1.0
 */
public interface RepositoryAgent extends AutoCloseable {
    /**
     * Takes part in the load of the model, before its files are read. Called once, first of all.
     *
     * @param modelDirectory the directory of the model, in the repository or from the agent before; must not be changed
     * @return the directory from which the model is loaded, with the structure of a model's directory: the given one, or
     *     another one such as {@link AgentContext#workDirectory}; it belongs to the server until {@link #unloadComplete}
     *     or {@link #loadFail}
     * @throws BackendException if the model must not be loaded; the load fails with the message, no further agent is
     *     called, and {@link #loadFail} follows
     */
    Path load(Path modelDirectory);

    /** Called when all versions of the model were loaded. Does nothing by default. */
    default void loadComplete() {}

    /** Called when the load failed, by this agent or later. Only {@link #close} follows. Does nothing by default. */
    default void loadFail() {}

    /** Called before the model is unloaded. Does nothing by default. */
    default void unload() {}

    /** Called when the model was unloaded. Only {@link #close} follows. Does nothing by default. */
    default void unloadComplete() {}

    /** Frees the resources of the agent. Called once. Does nothing by default. */
    @Override
    default void close() {}
}
