package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.agent.RepositoryAgent;
import java.nio.file.Path;

/** Forwards to a plugin's repository agent through the plugin boundary. Immutable; confined as the agent. */
final class IsolatedAgent implements RepositoryAgent {
    private final RepositoryAgent agent;
    private final PluginBoundary boundary;

    IsolatedAgent(RepositoryAgent agent, PluginBoundary boundary) {
        this.agent = agent;
        this.boundary = boundary;
    }

    @Override
    public Path load(Path modelDirectory) {
        return boundary.invoke("RepositoryAgent.load", () -> agent.load(modelDirectory));
    }

    @Override
    public void loadComplete() {
        boundary.close("RepositoryAgent.loadComplete", agent::loadComplete);
    }

    @Override
    public void loadFail() {
        boundary.close("RepositoryAgent.loadFail", agent::loadFail);
    }

    @Override
    public void unload() {
        boundary.close("RepositoryAgent.unload", agent::unload);
    }

    @Override
    public void unloadComplete() {
        boundary.close("RepositoryAgent.unloadComplete", agent::unloadComplete);
    }

    @Override
    public void close() {
        boundary.close("RepositoryAgent.close", agent::close);
    }
}
