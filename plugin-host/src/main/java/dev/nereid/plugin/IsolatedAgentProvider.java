package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.plugin.jar.PluginException;
import dev.nereid.spi.agent.AgentContext;
import dev.nereid.spi.agent.RepositoryAgent;
import dev.nereid.spi.agent.RepositoryAgentProvider;
import java.util.regex.Pattern;

/** A plugin's provider of a repository agent behind its boundary, with its name read once. Immutable. */
final class IsolatedAgentProvider implements RepositoryAgentProvider {
    private static final Pattern NAME = Pattern.compile("[a-z0-9_-]+");

    private final RepositoryAgentProvider provider;
    private final PluginBoundary boundary;
    private final String name;

    private IsolatedAgentProvider(RepositoryAgentProvider provider, PluginBoundary boundary, String name) {
        this.provider = provider;
        this.boundary = boundary;
        this.name = name;
    }

    static IsolatedAgentProvider of(RepositoryAgentProvider provider, PluginBoundary boundary) throws PluginException {
        String name = boundary.invoke("RepositoryAgentProvider.name", provider::name);
        if (!NAME.matcher(name).matches()) {
            throw new PluginException(provider.getClass().getName() + ": name: '" + name
                    + "' (expected: lower-case letters, digits, _ and -)");
        }
        return new IsolatedAgentProvider(provider, boundary, name);
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
