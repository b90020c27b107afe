/**
 * Repository agents, which act on loads and unloads of models, and the bundled agent {@code checksum}.
 *
 * <p>Starting points: {@link dev.nereid.server.agent.RepositoryAgents}, which finds agents by name, and
 * {@link dev.nereid.server.agent.AgentChain}, which calls the agents of one load.
 */
@NullMarked
package dev.nereid.server.agent;

import org.jspecify.annotations.NullMarked;
