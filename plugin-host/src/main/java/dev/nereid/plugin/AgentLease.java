package dev.nereid.plugin;

import dev.nereid.spi.agent.RepositoryAgentProvider;

/**
 * A use of a repository agent's provider that keeps its plugin loaded. Immutable.
 *
 * @param provider the provider behind the plugin boundary; must not be used after the close
 * @param release releases the plugin; later calls do nothing
 */
public record AgentLease(RepositoryAgentProvider provider, Runnable release) implements AutoCloseable {
    /** Releases the plugin. */
    @Override
    public void close() {
        release.run();
    }
}
