/**
 * Plugins: jars found in folders, each with a class loader of its own, and the backends they bring.
 *
 * <p>Starting point: {@link dev.nereid.server.plugin.BackendRegistry}. Everything that calls into a plugin goes
 * through its {@code PluginBoundary}.
 */
@NullMarked
package dev.nereid.server.plugin;

import org.jspecify.annotations.NullMarked;
