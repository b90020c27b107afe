/**
 * Repository agents, which act on loads and unloads of models, and the bundled agent {@code checksum}.
 *
 * <p>Starting points: {@link dev.nereid.plugin.agent.RepositoryAgents}, which finds agents by name, and
 * {@link dev.nereid.plugin.agent.AgentChain}, which calls the agents of one load.
 */
@NullMarked
package dev.nereid.plugin.agent;

import org.jspecify.annotations.NullMarked;
