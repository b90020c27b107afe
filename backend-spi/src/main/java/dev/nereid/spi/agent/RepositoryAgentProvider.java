package dev.nereid.spi.agent;

import dev.nereid.spi.BackendException;

/**
 * The entry point of a plugin that brings a repository agent. <em>Implemented by agents.</em>
 *
 * <p>The server finds it with {@link java.util.ServiceLoader}: the plugin's jar names the class in
 * {@code META-INF/services/dev.nereid.spi.agent.RepositoryAgentProvider}, its manifest has the entry
 * {@code Backend-Spi-Version}, and the class has a public constructor without arguments. A plugin may bring backends and
 * agents. It stays loaded as long as a model uses one of them, so what all models of an agent share may be kept by the
 * provider.
 *
 * @since 1.0
 */
public interface RepositoryAgentProvider {
    /**
     * Returns the name of this agent in {@code model_repository_agents} of configurations. Called whenever the plugin is
     * loaded, on a control thread; must be cheap.
     *
     * @return the name: lower-case letters, digits, {@code _} and {@code -}; the same at every call
     */
    String name();

    /**
     * Creates the agent of one load of a model. Called by several control threads at once, one for each load; may block.
     *
     * @param context the model and its parameters, valid until the agent is closed
     * @return the agent, owned and later closed by the server
     * @throws BackendException if a parameter is wrong or unknown; the load of the model fails with the message
     */
    RepositoryAgent create(AgentContext context);
}
