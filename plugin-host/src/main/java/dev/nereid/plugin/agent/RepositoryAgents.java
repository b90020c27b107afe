package dev.nereid.plugin.agent;

import dev.nereid.plugin.AgentLease;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.agent.RepositoryAgentProvider;
import inference.ModelConfig;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Function;

/**
 * Finds repository agents by name, first in plugins, then among the bundled ones. Immutable; safe for use by any
 * thread.
 */
public final class RepositoryAgents {
    private static final Map<String, RepositoryAgentProvider> BUNDLED =
            Map.of(ChecksumAgentProvider.NAME, new ChecksumAgentProvider());

    private final BackendRegistry plugins;
    private final Function<ModelConfig, String> json;

    /** Creates the agents of a server. They read configurations as JSON. */
    public RepositoryAgents(BackendRegistry plugins, Function<ModelConfig, String> json) {
        this.plugins = plugins;
        this.json = json;
    }

    /**
     * Creates the chain of agents for one load of a model. Calls no agent.
     *
     * @param config its configuration as read from its file
     * @return the chain, owned by the caller; empty if the configuration names no agent
     */
    public AgentChain chain(String model, ModelConfig config) {
        List<AgentChain.Configured> configured = config.getModelRepositoryAgents().getAgentsList().stream()
                .map(agent -> new AgentChain.Configured(agent.getName(), agent.getParametersMap()))
                .toList();
        return new AgentChain(model, configured, () -> json.apply(config), this::acquire);
    }

    private AgentLease acquire(String name) {
        SortedSet<String> names = new TreeSet<>(plugins.agents());
        if (names.contains(name)) {
            return plugins.acquireAgent(name);
        }
        RepositoryAgentProvider bundled = BUNDLED.get(name);
        if (bundled == null) {
            names.addAll(BUNDLED.keySet());
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "unable to find repository agent '" + name + "' (expected: one of " + names
                            + ", or a plugin that brings it)");
        }
        return new AgentLease(bundled, () -> {});
    }
}
