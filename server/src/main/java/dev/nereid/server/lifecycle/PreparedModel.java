package dev.nereid.server.lifecycle;

import dev.nereid.server.agent.AgentChain;
import dev.nereid.server.repository.ModelDirectory;
import inference.ModelConfig;
import java.util.NavigableSet;

/**
 * A model with its configuration and versions, before its backend is involved. Immutable.
 *
 * @param directory its directory, in the repository or from a repository agent
 * @param config its configuration, completed from the names of its files, normalized and checked so far
 * @param configured whether there is a configuration file
 * @param versions the versions to be loaded, at least one
 * @param agents its repository agents, which were called before its files were read
 */
public record PreparedModel(
        ModelDirectory directory,
        ModelConfig config,
        boolean configured,
        NavigableSet<Long> versions,
        AgentChain agents) {}
