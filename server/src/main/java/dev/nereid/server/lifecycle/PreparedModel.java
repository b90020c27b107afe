package dev.nereid.server.lifecycle;

import dev.nereid.plugin.agent.AgentChain;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.server.dependency.ModelRequirer;
import inference.ModelConfig;
import java.util.NavigableSet;

/**
 * A model with its configuration and versions, before its backend is involved. Immutable.
 *
 * @param directory its directory, in the repository or from a repository agent
 * @param config its configuration, completed from the names of its files, normalized and checked so far
 * @param configured whether there is a configuration file
 * @param hasMaxBatchSize whether its owner wrote {@code max_batch_size}, also as 0
 * @param versions the versions to be loaded, at least one
 * @param agents its repository agents, which were called before its files were read
 * @param forcedLoad the identity of the last forced load, part of its load id; {@link #NOT_FORCED} without one
 */
public record PreparedModel(
        ModelDirectory directory,
        ModelConfig config,
        boolean configured,
        boolean hasMaxBatchSize,
        NavigableSet<Long> versions,
        AgentChain agents,
        String forcedLoad,
        ModelRequirer requirer) {
    /** The identity of a model that was never loaded by force. */
    public static final String NOT_FORCED = "";

    /**
     * Returns the same model after a forced load.
     *
     * @param identity differs from the identities of all other forced loads, on any server
     * @return the model; its responses are cached apart from the responses of other loads
     */
    public PreparedModel withForcedLoad(String identity) {
        return new PreparedModel(directory, config, configured, hasMaxBatchSize, versions, agents, identity, requirer);
    }

    /** Returns the same model with a requirer, which loads the models that its backend requires. */
    public PreparedModel with(ModelRequirer changed) {
        return new PreparedModel(directory, config, configured, hasMaxBatchSize, versions, agents, forcedLoad, changed);
    }
}
