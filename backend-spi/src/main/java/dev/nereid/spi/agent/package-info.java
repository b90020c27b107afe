/**
 * The SPI of repository agents, used together with {@link dev.nereid.spi}.
 *
 * <p>Starting point: {@link dev.nereid.spi.agent.RepositoryAgentProvider}, which leads to
 * {@link dev.nereid.spi.agent.RepositoryAgent}. An agent takes part in the loads and unloads of the models that name it
 * in their configuration: it may verify or decrypt their files, or replace them by others.
 *
 * <p>Interfaces marked <em>implemented by the server</em> may gain methods in a minor version of the SPI; interfaces
 * marked <em>implemented by agents</em> gain {@code default} methods only.
 */
@NullMarked
package dev.nereid.spi.agent;

import org.jspecify.annotations.NullMarked;
