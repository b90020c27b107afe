package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.plugin.jar.PluginException;
import dev.nereid.spi.agent.AgentContext;
import dev.nereid.spi.agent.RepositoryAgent;
import dev.nereid.spi.agent.RepositoryAgentProvider;
import java.nio.file.Path;
import java.util.regex.Pattern;

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

    /** A plugin's provider of a repository agent behind its boundary, with its name read once. Immutable. */
    static final class Provider implements RepositoryAgentProvider {
        private static final Pattern NAME = Pattern.compile("[a-z0-9_-]+");

        private final RepositoryAgentProvider provider;
        private final PluginBoundary boundary;
        private final String name;

        private Provider(RepositoryAgentProvider provider, PluginBoundary boundary, String name) {
            this.provider = provider;
            this.boundary = boundary;
            this.name = name;
        }

        static Provider of(RepositoryAgentProvider provider, PluginBoundary boundary) throws PluginException {
            String name = boundary.invoke("RepositoryAgentProvider.name", provider::name);
            if (!NAME.matcher(name).matches()) {
                throw new PluginException(provider.getClass().getName() + ": name: '" + name
                        + "' (expected: lower-case letters, digits, _ and -)");
            }
            return new Provider(provider, boundary, name);
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public RepositoryAgent create(AgentContext context) {
            return new IsolatedAgent(
                    boundary.invoke("RepositoryAgentProvider.create", () -> provider.create(context)), boundary);
        }
    }
}
