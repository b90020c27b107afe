package dev.nereid.server.plugin;

import dev.nereid.spi.agent.RepositoryAgentProvider;

/**
 * One use of a repository agent's provider, whose plugin is loaded as long as it has one. Immutable.
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
